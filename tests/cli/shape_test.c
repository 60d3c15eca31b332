// The JSON of each command has a shape that scripts can rely on.

#include <string.h>

#include "harness.h"
#include "shell.h"

#define SESSION                                                                                    \
    "archived_at:number call_count:number created_at:number deleted_at:number "                    \
    "entry_count:number first_message_preview:string head_id:string id:string kind:string "        \
    "last_active_at:number last_entry_id:string last_event_sequence:number "                       \
    "last_user_message:string message_count:number model:object next_sequence:number "             \
    "own_totals:object project_dir:string root_id:string slug:string status:string "               \
    "status_until:number totals:object updated_at:number"
#define MESSAGE                                                                                    \
    "completed_at:number created_at:number deleted_at:number duration_ms:number hidden:boolean "   \
    "id:string kind:string parts:array producer:string role:string sequence:number "               \
    "session_id:string status:string"
#define TOTALS                                                                                     \
    "cache_read_tokens:number cache_write_tokens:number cost_nano_usd:number "                     \
    "input_tokens:number output_tokens:number"

static const struct {
    const char *line, *shape;
} SHAPES[] = {
    {"tine show plan --json", SESSION},
    {"tine ls --json | head -n 1", SESSION},
    {"tine rename plan plan --json", SESSION},
    {"tine rm plan --json; tine restore plan", SESSION},
    {"tine restore plan --json", SESSION},
    {"tine rewind plan @head --json", SESSION},
    {"tine tree plan --json | jq .sessions[0]", SESSION},
    {"tine tree plan --json", "sessions:array"},
    {"tine log plan --json", MESSAGE},
    {"tine show plan @head --json", MESSAGE},
    {"tine append plan x --json",
     "created_at:number id:string parent_id:string part_ids:array sequence:number "
     "session_id:string"},
    {"tine memory add plan x --json",
     "content:string created_at:number deleted_at:number id:string scope:string "
     "session_id:string updated_at:number"},
    {"tine memory list plan --json | head -n 1",
     "content:string created_at:number deleted_at:number id:string scope:string "
     "session_id:string updated_at:number"},
    {"tine todo set plan x --json", "items:array session_id:string summary:object "
                                    "updated_at:number"},
    {"tine todo list plan --json | jq .items[0]", "content:string status:string"},
    {"tine cost plan --json", "own:object rolled_up:object session_id:string"},
    {"tine cost plan --json | jq .own", TOTALS},
    {"tine cost --by project --json", "own:object project_dir:string rolled_up:object"},
    {"tine watch --oldest -n 1 --json",
     "created_at:number instance_id:string operation_id:string previous_session_sequence:number "
     "role:string sequence:number session_id:string type:string"},
    {"tine top --json", "health:object sessions:array stats:object"},
    {"tine ping --json", "ready:boolean took_us:number"},
    {"tine sync --json", "took_us:number"},
    {"tine version --json", "version:string"},
    {"tine version --server --json", "api_version:string format_version:number "
                                     "instance_id:string server_version:string version:string"},
    {"tine new --json | jq '{id,kind,status,model,own_totals}'",
     "id:string kind:string model:object own_totals:object status:string"},
    {"tine fork plan --json | jq '{id,parent_id,root_id,fork_message_id}'",
     "fork_message_id:string id:string parent_id:string root_id:string"},
    {"tine compact plan x --json | jq .marker",
     "automatic:boolean before_message_id:string keep_all:boolean overflow:boolean "
     "summary:string tokens_before:number tokens_saved:number"},
    {"tine clear plan --json | jq '{id,slug}'", "id:string slug:string"},
    {"tine purge plan --json --keep-for-forks -y", "kept_for_forks:boolean session_id:string"},
};

TEST(json_has_the_same_shape_for_ever)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_tined_start(shell);
    shell_ok(shell, "tine new -s plan; tine append plan hello");
    for (size_t i = 0; i < sizeof(SHAPES) / sizeof(*SHAPES); i++) {
        shell_ok(shell,
                 "set -o pipefail; { %s; } | jq -sr '.[0] | to_entries | sort_by(.key) | "
                 "map(.key + \":\" + (.value|type)) | join(\" \")' | tr -d '\\n'",
                 SHAPES[i].line);
        CHECK_STR(shell->output, SHAPES[i].shape);
    }
}
