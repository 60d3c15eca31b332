// Scripts for shells. They know nothing of tine: they pass the words of the line to `tine
// __complete` and show what it prints.

#include "completion.h"

#include <string.h>

// bash splits words at ':' and '=' and replaces only what follows the last of these. So the script
// splits the line again and leaves that prefix out of the answers. '@' also splits a word, because
// it may begin a host name, but bash replaces it together with what follows.
static const char BASH[] =
    "# bash completion for tine\n"
    "_tine() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words current prefix answer\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    current=${words[-1]}\n"
    "    prefix=${current%\"${current##*[:=]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r answer; do\n"
    "        case $answer in\n"
    "        :files) compopt -o default ;;\n"
    "        *)\n"
    "            answer=${answer%%$'\\t'*}\n"
    "            COMPREPLY+=(\"${answer#\"$prefix\"}\")\n"
    "            ;;\n"
    "        esac\n"
    "    done < <(command tine __complete -- \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -o nosort -F _tine tine\n";

static const char ZSH[] =
    "#compdef tine\n"
    "# zsh completion for tine\n"
    "_tine() {\n"
    "    local -a answers\n"
    "    local answer value\n"
    "    while IFS= read -r answer; do\n"
    "        if [[ $answer == :files ]]; then\n"
    "            _files\n"
    "            continue\n"
    "        fi\n"
    "        value=${answer%%$'\\t'*}\n"
    "        answers+=(\"${value//:/\\\\:}:${answer#*$'\\t'}\")\n"
    "    done < <(command tine __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#answers )) && _describe -V tine answers\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    "    _tine \"$@\"\n"
    "else\n"
    "    compdef _tine tine\n"
    "fi\n";

static const char FISH[] = "# fish completion for tine\n"
                           "function __tine_answers\n"
                           "    set -l words (commandline -opc) (commandline -ct)\n"
                           "    command tine __complete -- $words[2..-1] 2>/dev/null\n"
                           "end\n"
                           "complete -c tine -f -k -a '(__tine_answers | string match -v :files)'\n"
                           "complete -c tine -F -n '__tine_answers | string match -q :files'\n";

static const struct {
    const char *shell, *script;
} SCRIPTS[] = {
    {"bash", BASH},
    {"zsh", ZSH},
    {"fish", FISH},
};

const char *completion_script(const char *shell)
{
    for (size_t i = 0; i < sizeof(SCRIPTS) / sizeof(*SCRIPTS); i++) {
        if (strcmp(SCRIPTS[i].shell, shell) == 0) return SCRIPTS[i].script;
    }
    return NULL;
}
