// libtine from C++17: a session, two messages, its history, and the events of all that. Compiled
// and run by package_test.c.

#include <tine_calls.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Free {
    void operator()(Tine *tine) const { tine_close(tine); }
    void operator()(TineWatch *watch) const { tine_watch_close(watch); }
    void operator()(Tine__V1__Event *event) const
    {
        tine__v1__event__free_unpacked(event, nullptr);
    }
    template <typename Reply> void operator()(Reply *reply) const
    {
        protobuf_c_message_free_unpacked(&reply->base, nullptr);
    }
};

template <typename T> using Owned = std::unique_ptr<T, Free>;

class Store {
public:
    explicit Store(const char *url)
    {
        Tine *tine = nullptr;
        check(tine_open(url, &status, &tine));
        tine_.reset(tine);
    }

    std::string create(std::string project_dir)
    {
        std::string provider = "anthropic", name = "claude";
        Tine__V1__ModelRef model = TINE__V1__MODEL_REF__INIT;
        model.provider = provider.data();
        model.name = name.data();
        Tine__V1__NewSession session = TINE__V1__NEW_SESSION__INIT;
        session.project_dir = project_dir.data();
        session.model = &model;
        Tine__V1__CreateSessionRequest request = TINE__V1__CREATE_SESSION_REQUEST__INIT;
        request.session = &session;
        return call(tine_create_session, request)->session->id;
    }

    std::string append(std::string session, std::string text)
    {
        Tine__V1__Text content = TINE__V1__TEXT__INIT;
        content.text = text.data();
        Tine__V1__Part part = TINE__V1__PART__INIT;
        part.kind_case = TINE__V1__PART__KIND_TEXT;
        part.text = &content;
        Tine__V1__Part *parts[] = {&part};
        Tine__V1__NewMessage message = TINE__V1__NEW_MESSAGE__INIT;
        message.role = TINE__V1__ROLE__ROLE_USER;
        message.n_parts = 1;
        message.parts = parts;
        Tine__V1__AppendMessageRequest request = TINE__V1__APPEND_MESSAGE_REQUEST__INIT;
        request.session_id = session.data();
        request.message = &message;
        return call(tine_append_message, request)->receipt->id;
    }

    std::vector<std::string> history(std::string session)
    {
        Tine__V1__MessagesForSessionRequest request = TINE__V1__MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = session.data();
        auto response = call(tine_messages_for_session, request);
        std::vector<std::string> texts;
        for (size_t i = 0; i < response->n_messages; i++)
            texts.emplace_back(response->messages[i]->parts[0]->text->text);
        return texts;
    }

    Owned<TineWatch> watch(const std::string &session)
    {
        TineWatchOptions options = {};
        options.session_id = session.c_str();
        options.type_prefix = "message.";
        TineWatch *watch = nullptr;
        check(tine_watch(tine_.get(), &options, &status, &watch));
        return Owned<TineWatch>(watch);
    }

    Owned<Tine__V1__Event> next(TineWatch *watch)
    {
        Tine__V1__Event *event = nullptr;
        check(tine_watch_next(watch, 20000, &status, &event));
        if (!event) throw std::runtime_error("no event came");
        return Owned<Tine__V1__Event>(event);
    }

private:
    template <typename Request, typename Response>
    Owned<Response> call(int (*method)(Tine *, const TineCallOptions *, const Request *,
                                       Response **),
                         const Request &request)
    {
        TineCallOptions options = {};
        options.timeout_ms = 20000;
        options.out_status = &status;
        Response *response = nullptr;
        check(method(tine_.get(), &options, &request, &response));
        return Owned<Response>(response);
    }

    void check(int code) const
    {
        if (code) throw std::runtime_error(std::string(status.reason) + ": " + status.message);
    }

    TineStatus status = {};
    Owned<Tine> tine_;
};

} // namespace

int main(int argument_count, char **arguments)
try {
    Store store(argument_count > 1 ? arguments[1] : "embedded::memory:");
    std::string session = store.create("/project");
    Owned<TineWatch> watch = store.watch(session);
    std::string first = store.append(session, "Hello."), second = store.append(session, "Again.");
    for (const std::string &id : {first, second}) {
        if (store.next(watch.get())->message_id != id) throw std::runtime_error("another event");
    }
    for (const std::string &text : store.history(session))
        std::cout << text << '\n';
    return 0;
} catch (const std::exception &failure) {
    std::cerr << failure.what() << '\n';
    return 1;
}
