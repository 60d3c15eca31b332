// The table of workloads.

#include "workload.h"

#include "bench.h"

static const Workload *workloads[WORKLOADS_MAX];
static size_t count;

void workload_register(const Workload *workload)
{
    require(count < WORKLOADS_MAX, "more than %d workloads", WORKLOADS_MAX);
    size_t at = count++;
    for (; at > 0; at--) {
        const Workload *before = workloads[at - 1];
        if (before->order < workload->order) break;
        if (before->order == workload->order && strcmp(before->name, workload->name) < 0) break;
        workloads[at] = before;
    }
    workloads[at] = workload;
}

size_t workload_count(void)
{
    return count;
}

const Workload *workload_at(size_t index)
{
    return workloads[index];
}
