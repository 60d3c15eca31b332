//! Makes any call by its name, through the typed clients.

use prost::Message;
use tine_client::{Error, v1};

macro_rules! calls {
    ($($name:ident $function:ident $request:ident,)*) => {
        /// Takes an encoded request and returns the encoded reply.
        pub fn call(
            client: &v1::StoreServiceClient,
            name: &str,
            request: &[u8],
            step: &crate::Step,
        ) -> Result<Vec<u8>, Error> {
            match name {
                $(stringify!($name) => {
                    let request = v1::$request::decode(request).expect("it was just encoded");
                    Ok(client.$function(step.request(request))?.encode_to_vec())
                })*
                _ => panic!("no call {name}"),
            }
        }

        /// The same for tokio.
        pub async fn call_tokio(
            client: &v1::tokio::StoreServiceClient,
            name: &str,
            request: &[u8],
            step: &crate::Step,
        ) -> Result<Vec<u8>, Error> {
            match name {
                $(stringify!($name) => {
                    let request = v1::$request::decode(request).expect("it was just encoded");
                    Ok(client.$function(step.request(request)).await?.encode_to_vec())
                })*
                _ => panic!("no call {name}"),
            }
        }
    };
}

calls! {
    CreateSession create_session CreateSessionRequest,
    GetSession get_session GetSessionRequest,
    ListSessions list_sessions ListSessionsRequest,
    UpdateSessionTotals update_session_totals UpdateSessionTotalsRequest,
    PropagateTotals propagate_totals PropagateTotalsRequest,
    SoftDeleteSession soft_delete_session SoftDeleteSessionRequest,
    RenameSession rename_session RenameSessionRequest,
    LatestUserMessageId latest_user_message_id LatestUserMessageIdRequest,
    ForkSession fork_session ForkSessionRequest,
    AppendMessage append_message AppendMessageRequest,
    GetMessage get_message GetMessageRequest,
    MessagesForSession messages_for_session MessagesForSessionRequest,
    MessagesDirectForSession messages_direct_for_session MessagesDirectForSessionRequest,
    MessagesSinceLatestMarker messages_since_latest_marker MessagesSinceLatestMarkerRequest,
    AddCompactionMarker add_compaction_marker AddCompactionMarkerRequest,
    LatestMarker latest_marker LatestMarkerRequest,
    ListMarkersForSession list_markers_for_session ListMarkersForSessionRequest,
    RememberSessionMemory remember_session_memory RememberSessionMemoryRequest,
    ForgetSessionMemory forget_session_memory ForgetSessionMemoryRequest,
    ListSessionMemories list_session_memories ListSessionMemoriesRequest,
    ReplaceSessionTodos replace_session_todos ReplaceSessionTodosRequest,
    GetSessionTodos get_session_todos GetSessionTodosRequest,
    ResolveSession resolve_session ResolveSessionRequest,
    UpdateSession update_session UpdateSessionRequest,
    RestoreSession restore_session RestoreSessionRequest,
    PurgeSession purge_session PurgeSessionRequest,
    RewindSession rewind_session RewindSessionRequest,
    AppendPart append_part AppendPartRequest,
    SealMessage seal_message SealMessageRequest,
    DeleteMessage delete_message DeleteMessageRequest,
    PurgeMessage purge_message PurgeMessageRequest,
    ListMessages list_messages ListMessagesRequest,
    ListParts list_parts ListPartsRequest,
    PutOriginal put_original PutOriginalRequest,
    ListOriginals list_originals ListOriginalsRequest,
    BuildContext build_context BuildContextRequest,
    AppendExchange append_exchange AppendExchangeRequest,
    RecordCall record_call RecordCallRequest,
    ListCalls list_calls ListCallsRequest,
    DeleteCall delete_call DeleteCallRequest,
    SummarizeCost summarize_cost SummarizeCostRequest,
    ListEvents list_events ListEventsRequest,
    PublishEvent publish_event PublishEventRequest,
    BroadcastEvent broadcast_event BroadcastEventRequest,
    Health health HealthRequest,
    Describe describe DescribeRequest,
    Stats stats StatsRequest,
}
