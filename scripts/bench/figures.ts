import type { Figure } from './figure.ts'
import { budgets } from './figures/budgets.ts'
import { cacheHits } from './figures/cache-hits.ts'
import { clusterGateway } from './figures/cluster-gateway.ts'
import { clusterCpu, clusterFirstEvent } from './figures/cluster-runs.ts'
import { coldStart, coldStartTime } from './figures/cold-start.ts'
import { consoleFirstPaint } from './figures/console-first-paint.ts'
import { cpu } from './figures/cpu.ts'
import { dialects } from './figures/dialects.ts'
import { dispatchList } from './figures/dispatch-list.ts'
import { emptyJob } from './figures/empty-job.ts'
import { firstEvent } from './figures/first-event.ts'
import { flowAgents, flowRun, flowRunCluster } from './figures/flow-run.ts'
import { idleCustomers } from './figures/idle-customers.ts'
import { idleMemory } from './figures/idle-memory.ts'
import { ladder } from './figures/ladder.ts'
import { largeAnswers } from './figures/large-answers.ts'
import { ledgerGrowth } from './figures/ledger-growth.ts'
import { loadedMemory } from './figures/loaded-memory.ts'
import { pacedCpu, pacedFirstEvent, pacedStreams } from './figures/paced-streams.ts'
import { planSubmit } from './figures/plan-submit.ts'
import { queuedWork } from './figures/queued-work.ts'
import { routing } from './figures/routing.ts'
import { sessionGrowth } from './figures/session-growth.ts'
import { shortRuns } from './figures/short-runs.ts'
import { slowReader } from './figures/slow-reader.ts'
import { startGaps } from './figures/start-gaps.ts'
import { team } from './figures/team.ts'
import { uploadMemory, uploads } from './figures/uploads.ts'

/** All figures, in the order in which they are measured. */
export const FIGURES: readonly Figure[] = [
  firstEvent,
  clusterFirstEvent,
  clusterCpu,
  clusterGateway,
  shortRuns,
  cpu,
  ladder,
  ...dialects,
  pacedStreams,
  pacedCpu,
  pacedFirstEvent,
  ...startGaps,
  sessionGrowth,
  ledgerGrowth,
  flowRun,
  flowRunCluster,
  flowAgents,
  dispatchList,
  planSubmit,
  emptyJob,
  ...queuedWork,
  ...budgets,
  cacheHits,
  team,
  coldStart,
  coldStartTime,
  consoleFirstPaint,
  idleMemory,
  loadedMemory,
  idleCustomers,
  routing,
  slowReader,
  ...largeAnswers,
  uploads,
  uploadMemory,
]
