// The headers from C++: compiled by package_test.c.

#include <tine_calls.h>

#include <cstddef>
#include <string>

std::string latest(Tine *tine, const std::string &session, TineStatus &status)
{
    Tine__V1__LatestUserMessageIdRequest request = TINE__V1__LATEST_USER_MESSAGE_ID_REQUEST__INIT;
    request.session_id = const_cast<char *>(session.c_str());
    Tine__V1__LatestUserMessageIdResponse *response = nullptr;
    TineCallOptions options = {};
    options.timeout_ms = 1000;
    options.out_status = &status;
    if (tine_latest_user_message_id(tine, &options, &request, &response) != 0) return "";
    std::string id = response->message_id;
    protobuf_c_message_free_unpacked(&response->base, nullptr);
    return id;
}

int main()
{
    Tine *tine = nullptr;
    TineStatus status;
    if (tine_open("embedded::memory:", &status, &tine) != 0) return 1;
    (void)latest(tine, "x", status);
    TineWatchOptions watch_options = {};
    watch_options.start = TINE_WATCH_OLDEST;
    TineWatch *watch = nullptr;
    if (tine_watch(tine, &watch_options, &status, &watch) == 0) tine_watch_close(watch);
    tine_close(tine);
    return 0;
}
