import { runScenarios } from '../harness/scenarios.ts'
import { clusterNodeDies } from './scenarios/cluster-node-dies.ts'
import { deploy } from './scenarios/deploy.ts'
import { durableRuns } from './scenarios/durable-runs.ts'
import { freezeGateway } from './scenarios/freeze-gateway.ts'
import { freezeWorker } from './scenarios/freeze-worker.ts'
import { killExecutor } from './scenarios/kill-executor.ts'
import { killPlanExecutor } from './scenarios/kill-plan-executor.ts'
import { killWorker } from './scenarios/kill-worker.ts'
import { ledgerFence } from './scenarios/ledger-fence.ts'
import { ledgerKill } from './scenarios/ledger-kill.ts'
import { lossyRelay } from './scenarios/lossy-relay.ts'
import { ownCalls } from './scenarios/own-calls.ts'
import { permissionRaces } from './scenarios/permission-races.ts'
import { promoteReplica } from './scenarios/promote-replica.ts'
import { redisDies } from './scenarios/redis-dies.ts'
import { refusals } from './scenarios/refusals.ts'
import { rollingRestart } from './scenarios/rolling-restart.ts'
import { slowReaders } from './scenarios/slow-readers.ts'
import { tokens } from './scenarios/tokens.ts'

await runScenarios({
  name: 'chaos',
  scenarios: [
    slowReaders,
    killExecutor,
    permissionRaces,
    freezeWorker,
    killPlanExecutor,
    ledgerKill,
    redisDies,
    lossyRelay,
    ledgerFence,
    killWorker,
    refusals,
    durableRuns,
    deploy,
    ownCalls,
    tokens,
    rollingRestart,
    promoteReplica,
    clusterNodeDies,
    freezeGateway,
  ],
  lanes: 3,
  takes: { short: '2 to 3 min', full: 'about an hour' },
})
