// GetSession by gRPC.

#include "grpc_peer.h"

#include <fstream>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <sstream>
#include <string>

#include "tine/v1/store.grpc.pb.h"

using tine::v1::GetSessionRequest;
using tine::v1::GetSessionResponse;
using tine::v1::StoreService;

struct GrpcPeer {
    std::unique_ptr<StoreService::Stub> stub;
};

namespace {

class Service final : public StoreService::Service {
public:
    explicit Service(const std::string &reply)
    {
        reply_.ParseFromString(reply);
    }

    grpc::Status GetSession(grpc::ServerContext *, const GetSessionRequest *,
                            GetSessionResponse *response) override
    {
        *response = reply_;
        return grpc::Status::OK;
    }

private:
    GetSessionResponse reply_;
};

} // namespace

bool grpc_is_there(void)
{
    return true;
}

void grpc_serve(const char *socket, const char *reply_file)
{
    std::ifstream file(reply_file, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    Service service(bytes.str());
    grpc::ServerBuilder builder;
    builder.AddListeningPort(std::string("unix:") + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    builder.BuildAndStart()->Wait();
}

GrpcPeer *grpc_open(const char *socket)
{
    auto channel =
        grpc::CreateChannel(std::string("unix:") + socket, grpc::InsecureChannelCredentials());
    return new GrpcPeer{StoreService::NewStub(channel)};
}

size_t grpc_get_session(GrpcPeer *peer, const char *session_id)
{
    grpc::ClientContext context;
    GetSessionRequest request;
    GetSessionResponse response;
    request.set_session_id(session_id);
    grpc::Status status = peer->stub->GetSession(&context, request, &response);
    return status.ok() ? response.session().id().size() : 0;
}

void grpc_close(GrpcPeer *peer)
{
    delete peer;
}
