/** Why a test file may use much CPU time: what it shows that no cheaper test can. A file that gets among the dearest gets cheaper, or a reason. */
export const REASONS: Readonly<Record<string, string | undefined>> = {
  'test/chaos/chaos.test.ts':
    'seven clusters of processes, each under a fault of its own; P1 to P4 and P21 to P23 hold with no other test',
  'test/cluster/redis-cluster-failover.test.ts':
    'a Redis Cluster of six nodes, of which one dies and one loses a slot under open streams (D33)',
  'test/console/approvals.test.ts': 'the page where a person decides: each of its cases is a page in a browser',
  'test/deploy/image.test.ts': 'the programs and folders of the image, run as its user',
  'test/deploy/rolling.test.ts': 'the services of compose.yaml as processes behind nginx, each replaced under load',
  'test/documents/chat-pages.test.ts':
    'the pages of the guide with the packages of other products, bundled and used in Chromium',
  'test/documents/guide.test.ts':
    'each command of the guide is executed, some 300 processes of curl and jq beside the product',
  'test/documents/readme.test.ts':
    'each command of the README is executed, on products and on a cluster whose workers are killed',
  'test/e2e/dialects.test.ts': 'the SDKs of other companies against every dialect, in both forms of the product',
  'test/e2e/durable-runs.test.ts':
    'runs in each state, under which workers, a gateway and a whole process are killed, frozen and replaced (D32.5, D32.7a)',
  'test/e2e/plans/executors.test.ts':
    'executors as processes, killed in the middle of steps and flows, in commands and in tools (D34)',
  'test/fuzz/fuzz.test.ts':
    '850 hand-written requests, the small ones twice, and 500 generated ones against a process (P12)',
  'test/gateway/generated.test.ts':
    'generated requests to every operation, whose answers are checked against the API description',
  'test/platform/schemas/hostile.test.ts': 'schemas that are made to use the CPU (P13)',
  'test/platform/schemas/checker.test.ts': 'checks that use up the time and the memory that they may have (P13)',
  'test/platform/store/mongo/failover.test.ts': 'a replica set of three members loses its primary (P5)',
  'test/scripts/doctor.test.ts': 'the doctor against installations with one fault each',
  'test/scripts/run-cluster.test.ts': 'whole clusters, started and ended as an operator does',
  'test/scripts/test.test.ts': 'each case runs scripts/test in a project of its own',
  'test/security/short-forms.test.ts': 'attacks on processes through every route and for every kind of id (P11 to P20)',
  'test/simulation/simulation.test.ts': '100 clusters under faults on a simulated clock',
}
