import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect } from 'chai'

/** Where processes wait for others on behalf of requests. */
const FOLDERS = [
  'shared/cluster',
  'shared/platform/redis',
  'shared/platform/store',
  'shared/tenancy/rate',
  'shared/work/queue',
  'shared/work/flows/calls',
  'shared/work/plans',
  'services/gateway/starting',
  'services/worker',
]

/** Pauses between two tries or looks, periods, and how long something is kept: nobody waits for another process meanwhile. */
const NO_WAITS = new Set([
  ...['registry CHECK_WITHIN_MS', 'registry CHECK_AGAIN_MS'],
  ...['redis-decisions POLL_MS', 'watch SILENT_MS', 'memory-owners KEEP_MS', 'outbox WAIT_MS'],
  ...[
    'session-router HANDOFF_STEP_MS',
    'session-router RELEASE_EVERY_MS',
    'held-claims RETRY_MS',
    'held-claims REFRESH_MS',
  ],
  ...['worker OFFER_AGAIN_MS', 'run-recovery STEP_MS', 'run-recovery RETRY_MS', 'run-recovery LOOK_MS'],
  ...['run-recovery SWEEP_MS', 'worker-places RETRY_MS', 'gateway WATCH_MS', 'calls KEEP_MS', 'calls DELETE_EVERY_MS'],
  ...['run-starts MIN_TRY_MS', 'workers CRASH_WINDOW_MS', 'workers REVIEW_MS', 'redis-member-scripts CHECKED_MS'],
  ...[
    'moment MAX_DIFFERENCE_MS',
    'member-table NOTICE_MS',
    'waiting-runs LOOK_EVERY_MS',
    'waiting-runs EXPECTED_MS',
    'executor END_WITHIN_MS',
    'run-finder STARTING_STEP_MS',
  ],
  ...[
    'queue-places RETRY_MS',
    'link FULL_MS',
    'wait-for-redis PAUSE_MS',
    'listener PAUSE_MS',
    'subscriptions RETRY_MS',
  ],
  ...['idempotency KEPT_MS', 'connect RETRY_MAX_MS', 'connect REDIRECT_MS', 'connect SLOTS_EVERY_MS', 'group SLOW_MS'],
  ...['guard FAIL_FAST_AFTER_MS', 'mongo BUILD_TIMEOUT_MS', 'connection-monitor CHECK_EVERY_MS'],
  ...['connection-monitor STOP_TIMEOUT_MS', 'redis PAUSE_MS', 'window WINDOW_MS', 'bullmq-consume REPEAT_MS'],
  ...['bullmq-redis CLOSE_MS', 'watch RETRY_MS', 'memory-schedules MAX_TIMER_MS', 'memory-consumer LOOK_EVERY_MS'],
  ...['bullmq-worker LOOK_EVERY_MS', 'bullmq-worker LOOK_LATER_MS', 'bullmq-worker AFTER_FAILURE_MS'],
  'bullmq-worker END_WITHIN_MS',
  ...[
    'once LOOK_EVERY_MS',
    'once WAITING_LOOK_MS',
    'calls LOOK_EVERY_MS',
    'end-lost-execution REQUEUE_MS',
    'answer-start FOLLOW_EVERY_MS',
  ],
  ...['start-once FREE_MS', 'start-once FREE_EVERY_MS', 'start-once LOOK_EVERY_MS', 'durability SAVE_EVERY_MS'],
  ...['session-saver STALLED_MS', 'session-saver MAX_BATCH_MS', 'session-runs SOON_MS', 'go-on RETRY_MS'],
  ...[
    'stored-sessions TAKE_BACK_MS',
    'stored-sessions TAKE_BACK_EVERY_MS',
    'take-back WITHIN_MS',
    'take-back EVERY_MS',
  ],
  ...['take-back LATE_MS', 'start-execution END_WITHIN_MS', 'start-execution END_EVERY_MS'],
  ...['flow-runs ADD_WITHIN_MS', 'flow-runs ADD_EVERY_MS'],
  ...['ticks CLAIMED_MS', 'step-runs LOOK_EVERY_MS', 'active-plans COUNTED_MS', 'active-plans LEAVE_EVERY_MS'],
  ...['plans CREATION_MS', 'plans ENDED_MS', 'plans CREATED_MS', 'execute LOOK_EVERY_MS', 'execute FENCE_EVERY_MS'],
  ...['execute GRACE_MS', 'execute LEAVE_MS', 'documents LONGEST_MS'],
  ...['busy-marks SWEEP_EVERY_MS', 'busy-marks IDLE_MS'],
  ...['on-disconnect BACK_WITHIN_MS', 'on-disconnect TRY_MS', 'on-disconnect TRY_EVERY_MS'],
  ...['waiting-run FIRST_LOOK_MS', 'waiting-run LOOK_EVERY_MS', 'orphan-sweep ADDED_MS'],
  ...['member STARTS_MS', 'background-writes RETRY_MS', 'permission-requester RETRY_MS', 'earlier-asks RETRY_MS'],
])

type Wait = { name: string; ms: number; lessThan: string[] }

const ROW = /^\| `([\w-]+ [A-Z_]+_MS)` \| [^|]+ \| ([\d,]+) \| ([^|]*) \|$/gm
const CONSTANT = /^(?:export )?const ([A-Z_]+_MS) = ([\d_]+)$/gm

const table = (): Wait[] =>
  Array.from(readFileSync('shared/cluster/README.md', 'utf8').matchAll(ROW), ([, name = '', ms = '', outer = '']) => ({
    name,
    ms: Number(ms.replaceAll(',', '')),
    lessThan: Array.from(outer.matchAll(/`([^`]+)`/g), ([, each = '']) => each),
  }))

/** The constants of the source, by file and name. */
function constants(): Map<string, number> {
  const files = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.ts`))
  const found = files.flatMap((file) =>
    Array.from(readFileSync(file, 'utf8').matchAll(CONSTANT), ([, name, ms = '']) => {
      const key = `${basename(file, '.ts')} ${name}`
      return [key, Number(ms.replaceAll('_', ''))] as const
    }),
  )
  return new Map(found)
}

describe('the table of waits between processes', () => {
  it('says what the source says', () => {
    const source = constants()
    for (const { name, ms } of table()) expect(source.get(name), name).to.equal(ms)
  })

  it('lacks none', () => {
    const listed = new Set(table().map(({ name }) => name))
    const missing = [...constants().keys()].filter((name) => !listed.has(name) && !NO_WAITS.has(name))
    expect(missing, 'list it in shared/cluster/README.md, or as a pause in this test').to.deep.equal([])
  })

  it('has a name for each', () => {
    const files = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.ts`))
    const hidden = files.filter((file) =>
      /(deadline|within|timeout)Ms: \d|TimeoutMS: \d/i.test(readFileSync(file, 'utf8')),
    )
    expect(hidden, 'give the number a name that ends with _MS').to.deep.equal([])
  })

  it('D36.1: each wait is shorter than those that it is inside of', () => {
    const all = new Map(table().map((wait) => [wait.name, wait]))
    for (const { name, ms, lessThan } of all.values()) {
      for (const outer of lessThan) expect(ms, `${name}, in ${outer}`).to.be.below(all.get(outer)?.ms ?? -1)
    }
    expect(all.get('run-starts TRY_MS')?.lessThan).to.deep.equal(['worker-calls ACCEPT_MS'])
  })
})
