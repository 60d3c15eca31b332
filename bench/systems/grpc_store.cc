// A store of conversations over gRPC C++.

#include "grpc_store.h"

#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tine/v1/store.grpc.pb.h"

using namespace tine::v1;
using grpc::ServerContext;
using grpc::Status;

namespace {

const size_t BLOCK_BYTES_MAX = 64 << 20;

// What a client's requests and replies are made in: protobuf's arena, on a block that grows until a
// reply fits into it, as libtine's arena does. What it made lives until the next one is begun.
class Messages {
public:
    Messages()
    {
        renew();
    }

    void begin()
    {
        bool fits = arena_->SpaceAllocated() <= block_.size();
        if (fits || block_.size() >= BLOCK_BYTES_MAX) {
            arena_->Reset();
            return;
        }
        size_t size = std::min<size_t>(2 * arena_->SpaceAllocated(), BLOCK_BYTES_MAX);
        arena_.reset();
        block_.resize(size);
        renew();
    }

    template <typename Message> Message &make()
    {
        return *google::protobuf::Arena::CreateMessage<Message>(arena_.get());
    }

private:
    void renew()
    {
        google::protobuf::ArenaOptions options;
        options.initial_block = block_.data();
        options.initial_block_size = block_.size();
        arena_.reset(new google::protobuf::Arena(options));
    }

    std::vector<char> block_ = std::vector<char>(4096);
    std::unique_ptr<google::protobuf::Arena> arena_;
};

} // namespace

struct GrpcStore {
    std::unique_ptr<StoreService::Stub> stub;
    Messages messages; // of the call that is made: a client is one thread's
};

namespace {

const int MESSAGE_BYTES_MAX = 256 << 20;

void set_id(char *out, const std::string &id)
{
    if (out) snprintf(out, GRPC_ID_BYTES, "%s", id.c_str());
}

void fill_session(void *context, const GrpcSession *from)
{
    auto *session = static_cast<Session *>(context);
    session->set_id(from->id);
    session->set_slug(from->slug ? from->slug : "");
    session->set_first_message_preview(from->preview ? from->preview : "");
    Totals *totals = session->mutable_own_totals();
    totals->set_input_tokens(from->own_totals[0]);
    totals->set_output_tokens(from->own_totals[1]);
    totals->set_cache_read_tokens(from->own_totals[2]);
    totals->set_cache_write_tokens(from->own_totals[3]);
}

void add_session(void *context, const GrpcSession *from)
{
    fill_session(static_cast<ListSessionsResponse *>(context)->add_sessions(), from);
}

// NewMessage has Message's field numbers, so its bytes are those of one without the server's fields.
void fill_message(void *context, const char *id, const void *bytes, size_t size)
{
    auto *message = static_cast<Message *>(context);
    message->ParseFromArray(bytes, static_cast<int>(size));
    message->set_id(id);
}

template <typename Response>
void add_message(void *context, const char *id, const void *bytes, size_t size)
{
    fill_message(static_cast<Response *>(context)->add_messages(), id, bytes, size);
}

std::string text_of(const Message &message)
{
    for (const Part &part : message.parts()) {
        if (part.has_text()) return part.text().text();
    }
    return "";
}

class Service final : public StoreService::Service {
public:
    Service(const char *directory, const GrpcBackend *backend)
        : directory_(directory), backend_(backend)
    {
    }

    Status CreateSession(ServerContext *, const CreateSessionRequest *request,
                         CreateSessionResponse *response) override
    {
        const NewSession &session = request->session();
        char id[GRPC_ID_BYTES];
        bool has_parent = !session.parent_id().empty();
        backend_->create(store(), session.slug().c_str(),
                         has_parent ? session.parent_id().c_str() : nullptr, id);
        response->mutable_session()->set_id(id);
        return Status::OK;
    }

    Status ForkSession(ServerContext *, const ForkSessionRequest *request,
                       ForkSessionResponse *response) override
    {
        char id[GRPC_ID_BYTES];
        backend_->fork(store(), request->session_id().c_str(),
                       request->through_message_id().c_str(), id);
        response->mutable_session()->set_id(id);
        return Status::OK;
    }

    Status AppendMessage(ServerContext *, const AppendMessageRequest *request,
                         AppendMessageResponse *response) override
    {
        static const char *const roles[] = {"", "user", "assistant", "tool", "system", ""};
        const NewMessage &message = request->message();
        std::string bytes = message.SerializeAsString();
        bool is_user = message.role() == ROLE_USER && message.parts_size() > 0;
        char id[GRPC_ID_BYTES];
        backend_->append(store(), request->session_id().c_str(), roles[message.role()],
                         is_user ? message.parts(0).text().text().c_str() : nullptr,
                         message.has_usage(), bytes.data(), bytes.size(), id);
        response->mutable_receipt()->set_id(id);
        return Status::OK;
    }

    Status PropagateTotals(ServerContext *, const PropagateTotalsRequest *request,
                           PropagateTotalsResponse *) override
    {
        backend_->propagate(store(), request->session_id().c_str());
        return Status::OK;
    }

    Status GetSession(ServerContext *, const GetSessionRequest *request,
                      GetSessionResponse *response) override
    {
        backend_->get_session(store(), request->session_id().c_str(), fill_session,
                              response->mutable_session());
        return Status::OK;
    }

    Status GetMessage(ServerContext *, const GetMessageRequest *request,
                      GetMessageResponse *response) override
    {
        backend_->get_message(store(), request->message_id().c_str(), fill_message,
                              response->mutable_message());
        return Status::OK;
    }

    Status ListSessionMemories(ServerContext *, const ListSessionMemoriesRequest *request,
                               ListSessionMemoriesResponse *) override
    {
        backend_->memories(store(), request->session_id().c_str());
        return Status::OK;
    }

    Status AddCompactionMarker(ServerContext *, const AddCompactionMarkerRequest *request,
                               AddCompactionMarkerResponse *) override
    {
        backend_->mark(store(), request->session_id().c_str(),
                       request->marker().before_message_id().c_str());
        return Status::OK;
    }

    Status MessagesForSession(ServerContext *, const MessagesForSessionRequest *request,
                              MessagesForSessionResponse *response) override
    {
        backend_->history(store(), request->session_id().c_str(), false,
                          add_message<MessagesForSessionResponse>, response);
        return Status::OK;
    }

    Status MessagesSinceLatestMarker(ServerContext *,
                                     const MessagesSinceLatestMarkerRequest *request,
                                     MessagesSinceLatestMarkerResponse *response) override
    {
        backend_->history(store(), request->session_id().c_str(), true,
                          add_message<MessagesSinceLatestMarkerResponse>, response);
        return Status::OK;
    }

    Status ListSessions(ServerContext *, const ListSessionsRequest *request,
                        ListSessionsResponse *response) override
    {
        const std::string &query = request->query();
        backend_->list(store(), request->limit(), query.empty() ? nullptr : query.c_str(),
                       add_session, response);
        return Status::OK;
    }

private:
    // gRPC starts and ends threads as it likes: a store goes from call to call, the one used last
    // first, so that as few are opened as there are calls at once.
    class Lease {
    public:
        explicit Lease(Service *service) : service_(service)
        {
            std::lock_guard<std::mutex> guard(service->mutex_);
            if (service->idle_.empty()) {
                store_ = service->backend_->open(service->directory_.c_str());
            } else {
                store_ = service->idle_.back();
                service->idle_.pop_back();
            }
        }

        ~Lease()
        {
            std::lock_guard<std::mutex> guard(service_->mutex_);
            service_->idle_.push_back(store_);
        }

        operator void *() const
        {
            return store_;
        }

    private:
        Service *service_;
        void *store_;
    };

    Lease store()
    {
        return Lease(this);
    }

    std::mutex mutex_;
    std::vector<void *> idle_;
    std::string directory_;
    const GrpcBackend *backend_;
};

void require_ok(const Status &status, const char *what)
{
    if (status.ok()) return;
    std::cerr << "gRPC: " << what << ": " << status.error_message() << "\n";
    exit(1);
}

void draft(NewMessage *message, GrpcRole role, const char *text, size_t text_bytes)
{
    static const Role roles[] = {ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL};
    message->set_role(roles[role]);
    Part *part = message->add_parts();
    if (role == GRPC_TOOL) {
        part->mutable_tool_result()->set_tool_use_id("toolu_01A09q90qw90lq917835lq9");
        part->mutable_tool_result()->set_content(text, text_bytes);
        return;
    }
    part->mutable_text()->set_text(text, text_bytes);
    if (role == GRPC_USER) return;
    ToolUse *use = message->add_parts()->mutable_tool_use();
    use->set_id("toolu_01A09q90qw90lq917835lq9");
    use->set_name("read");
    use->set_input_json("{\"path\":\"/home/user/project/src/main.c\",\"limit\":200}");
    Usage *usage = message->mutable_usage();
    usage->set_input_tokens(900);
    usage->set_output_tokens(100);
    usage->set_cache_read_tokens(12000);
    usage->set_cache_write_tokens(300);
    usage->set_cost_nano_usd(12300000);
}

template <typename Response>
void tally(const Response &response, size_t *out_messages, size_t *out_text_bytes)
{
    *out_messages = static_cast<size_t>(response.messages_size());
    *out_text_bytes = 0;
    for (const Message &message : response.messages()) {
        for (const Part &part : message.parts()) {
            if (part.has_text()) *out_text_bytes += strlen(part.text().text().c_str());
            if (part.has_tool_result())
                *out_text_bytes += strlen(part.tool_result().content().c_str());
        }
    }
}

} // namespace

void grpc_store_serve(const char *socket, const char *directory, const GrpcBackend *backend)
{
    Service service(directory, backend);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(std::string("unix:") + socket, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(MESSAGE_BYTES_MAX);
    builder.RegisterService(&service);
    builder.BuildAndStart()->Wait();
}

void grpc_store_preview(const void *bytes, size_t size, char out[161])
{
    Message message;
    message.ParseFromArray(bytes, static_cast<int>(size));
    snprintf(out, 161, "%s", text_of(message).c_str());
}

void *grpc_store_encode(GrpcRole role, const char *text, size_t text_bytes, size_t *out_size)
{
    NewMessage message;
    draft(&message, role, text, text_bytes);
    *out_size = message.ByteSizeLong();
    void *bytes = malloc(*out_size);
    message.SerializeToArray(bytes, static_cast<int>(*out_size));
    return bytes;
}

GrpcStore *grpc_store_open(const char *socket)
{
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(MESSAGE_BYTES_MAX);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1); // a connection for each client
    auto channel = grpc::CreateCustomChannel(std::string("unix:") + socket,
                                             grpc::InsecureChannelCredentials(), arguments);
    auto *store = new GrpcStore;
    store->stub = StoreService::NewStub(channel);
    return store;
}

void grpc_store_close(GrpcStore *store)
{
    delete store;
}

void grpc_store_create(GrpcStore *store, const char *slug, const char *parent, char *out_id)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<CreateSessionRequest>();
    auto &response = store->messages.make<CreateSessionResponse>();
    request.mutable_session()->set_slug(slug);
    request.mutable_session()->set_project_dir("/home/user/project");
    if (parent) request.mutable_session()->set_parent_id(parent);
    require_ok(store->stub->CreateSession(&context, request, &response), "CreateSession");
    set_id(out_id, response.session().id());
}

void grpc_store_fork(GrpcStore *store, const char *session, const char *message, char *out_id)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<ForkSessionRequest>();
    auto &response = store->messages.make<ForkSessionResponse>();
    request.set_session_id(session);
    request.set_through_message_id(message);
    require_ok(store->stub->ForkSession(&context, request, &response), "ForkSession");
    set_id(out_id, response.session().id());
}

void grpc_store_append(GrpcStore *store, const char *session, GrpcRole role, const char *text,
                       size_t text_bytes, char *out_id)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<AppendMessageRequest>();
    auto &response = store->messages.make<AppendMessageResponse>();
    request.set_session_id(session);
    draft(request.mutable_message(), role, text, text_bytes);
    require_ok(store->stub->AppendMessage(&context, request, &response), "AppendMessage");
    set_id(out_id, response.receipt().id());
}

void grpc_store_propagate(GrpcStore *store, const char *session)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<PropagateTotalsRequest>();
    auto &response = store->messages.make<PropagateTotalsResponse>();
    request.set_session_id(session);
    request.mutable_delta()->set_input_tokens(900);
    require_ok(store->stub->PropagateTotals(&context, request, &response), "PropagateTotals");
}

void grpc_store_get_session(GrpcStore *store, const char *session)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<GetSessionRequest>();
    auto &response = store->messages.make<GetSessionResponse>();
    request.set_session_id(session);
    require_ok(store->stub->GetSession(&context, request, &response), "GetSession");
}

void grpc_store_get_message(GrpcStore *store, const char *message)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<GetMessageRequest>();
    auto &response = store->messages.make<GetMessageResponse>();
    request.set_message_id(message);
    require_ok(store->stub->GetMessage(&context, request, &response), "GetMessage");
}

void grpc_store_memories(GrpcStore *store, const char *session)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<ListSessionMemoriesRequest>();
    auto &response = store->messages.make<ListSessionMemoriesResponse>();
    request.set_session_id(session);
    require_ok(store->stub->ListSessionMemories(&context, request, &response), "memories");
}

void grpc_store_mark(GrpcStore *store, const char *session, const char *before)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<AddCompactionMarkerRequest>();
    auto &response = store->messages.make<AddCompactionMarkerResponse>();
    request.set_session_id(session);
    request.mutable_marker()->set_before_message_id(before);
    require_ok(store->stub->AddCompactionMarker(&context, request, &response), "a marker");
}

void grpc_store_history(GrpcStore *store, const char *session, bool since_marker,
                        size_t *out_messages, size_t *out_text_bytes)
{
    grpc::ClientContext context;
    store->messages.begin();
    if (since_marker) {
        auto &request = store->messages.make<MessagesSinceLatestMarkerRequest>();
        auto &response = store->messages.make<MessagesSinceLatestMarkerResponse>();
        request.set_session_id(session);
        require_ok(store->stub->MessagesSinceLatestMarker(&context, request, &response), "a read");
        tally(response, out_messages, out_text_bytes);
        return;
    }
    auto &request = store->messages.make<MessagesForSessionRequest>();
    auto &response = store->messages.make<MessagesForSessionResponse>();
    request.set_session_id(session);
    require_ok(store->stub->MessagesForSession(&context, request, &response), "a history");
    tally(response, out_messages, out_text_bytes);
}

size_t grpc_store_list(GrpcStore *store, size_t limit, const char *query)
{
    grpc::ClientContext context;
    store->messages.begin();
    auto &request = store->messages.make<ListSessionsRequest>();
    auto &response = store->messages.make<ListSessionsResponse>();
    request.set_limit(static_cast<uint32_t>(limit));
    if (query) request.set_query(query);
    require_ok(store->stub->ListSessions(&context, request, &response), "ListSessions");
    return static_cast<size_t>(response.sessions_size());
}
