import { EXECUTOR_LOST } from '../../../../shared/work/flows/transitions.ts'
import { allOf, type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import type { ScenarioOptions } from '../../../harness/scenario.ts'
import { until } from '../../../support/until.ts'
import { check, noViolations } from '../../checker.ts'
import { Standalone } from '../ledger/standalone.ts'
import { callFlow, type FlowAnswer, type FlowCall } from './call.ts'
import { sentTooOften, servedTwice } from './judge.ts'
import { EchoModel } from './model.ts'
import { type FlowRecord, readRecords } from './records.ts'
import { flowSettings, prepareFlow } from './setup.ts'

const AT_ONCE = 4
const CALLS = 16
/** Long enough that none of the first executions ends before the kill. */
const TAKES_MS = 3_000
const ENDED_WITHIN_MS = 25_000

type Round = {
  calls: readonly FlowCall[]
  /** The tokens whose executions had begun at the kill. */
  begun: ReadonlySet<string>
  /** After the restart, and after the calls with a key were repeated. */
  after: readonly FlowRecord[]
  last: readonly FlowRecord[]
  again: readonly FlowAnswer[]
}

/**
 * Kills the standalone process while some executions run and others are queued, and starts it again: the running ones begin anew with a key and end as `error` without,
 * the queued ones are executed, and each key can be used again.
 */
export async function restartStandalone({ say }: ScenarioOptions, restarts: number): Promise<Guarantee[]> {
  await using model = await EchoModel.start()
  await using standalone = new Standalone({ ...flowSettings(), RUNS_PER_WORKER: String(AT_ONCE) })
  await standalone.start()
  await prepareFlow([standalone.url], model.url)
  const rounds: Round[] = []
  for (let n = 1; n <= restarts; n++) rounds.push(await restart(standalone, model, n))
  say(`standalone restarted ${restarts} times`)
  return [...guaranteesOf(rounds, model), noViolations(check(standalone.history))]
}

async function restart(standalone: Standalone, model: EchoModel, n: number): Promise<Round> {
  const calls = Array.from({ length: CALLS }, (_, i) => callOf(standalone.url, `restart-${n}-${i}`, i))
  const sentOf = () => calls.filter(({ input }) => model.countOf(input.token) > 0)
  const running = calls.slice(0, AT_ONCE).map(callFlow)
  // Before the others are sent: otherwise all that run may happen to be without a key.
  await until(() => sentOf().length === AT_ONCE, {
    what: `${AT_ONCE} executions to run`,
    lastSeen: () => sentOf().length,
  })
  const pending = Promise.all([...running, ...calls.slice(AT_ONCE).map(callFlow)])
  // An execution is recorded a moment before its job is queued.
  await until(async () => countJobs(await standalone.metrics()) === CALLS, { what: 'the others to be queued' })
  await standalone.kill()
  const begun = new Set(sentOf().map(({ input }) => input.token))
  await pending
  await standalone.start()
  const after = await readRecords(standalone.url, ENDED_WITHIN_MS)
  const repeated = calls.filter(({ key }) => key !== undefined).map((call) => ({ ...call, url: standalone.url }))
  const again = await Promise.all(repeated.map(callFlow))
  return { calls, begun, after, again, last: await readRecords(standalone.url, ENDED_WITHIN_MS) }
}

/** The jobs of flows that run or wait. */
const countJobs = (metrics: string): number =>
  [...metrics.matchAll(/^agent_engine_queue_jobs\{kind="flow",state="(?:waiting|active)"\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )

/** Half of the calls have a key, half read a stream, in all combinations. */
const callOf = (url: string, token: string, i: number): FlowCall => ({
  ...{ url, gateway: 'standalone', input: { token, ms: TAKES_MS }, isStream: i % 4 > 1 },
  ...(i % 2 === 0 && { key: `key of ${token}` }),
})

function guaranteesOf(rounds: readonly Round[], model: EchoModel): Guarantee[] {
  const running = rounds.flatMap((round) => executionsOf(round, true))
  const queued = rounds.flatMap((round) => executionsOf(round, false))
  const again = rounds.flatMap((round) => round.again)
  const last = rounds.at(-1)?.last ?? []
  const [keyed, others] = [running.filter(hasKey), running.filter((each) => !hasKey(each))]
  const lost = others.filter(({ status, error }) => status === 'error' && error?.message === EXECUTOR_LOST.message)
  const named = (title: string) => `standalone restarted: ${title}`
  return [
    allOf(named('executions that were running'), running.length, rounds.length * AT_ONCE),
    allOf(named('those without a key end as error'), lost.length, others.length),
    allOf(named('those with a key begin anew'), keyed.filter(({ status }) => status === 'ok').length, keyed.length),
    allOf(
      named('queued executions are executed'),
      queued.filter(({ status }) => status === 'ok').length,
      rounds.length * (CALLS - AT_ONCE),
    ),
    allOf(named('keys used again are answered'), again.filter(({ status }) => status === 200).length, again.length),
    noneOf(named('keys that two executions served'), servedTwice(last)),
    noneOf(named('prompts sent more often than they were executed'), sentTooOften(last, model)),
    noneOf(named('answers to keys used again that are not those of their execution'), rounds.flatMap(wrongAnswers)),
  ]
}

const hasKey = ({ idempotency_key: key }: FlowRecord): boolean => key !== null

/** The records of the first calls whose executions had, or had not, begun at the kill. */
const executionsOf = ({ after, begun, calls }: Round, hasBegun: boolean): FlowRecord[] =>
  after.filter(
    ({ input: { token } }) => begun.has(token) === hasBegun && calls.some(({ input }) => input.token === token),
  )

/** A key gets the answer of the execution that it stands for, also where that began anew. */
function wrongAnswers({ after, again }: Round): string[] {
  return again.flatMap(({ input: { token }, traceId, isReplayed }) => {
    const first = after.find(({ input }) => input.token === token)?.trace_id
    const isRight = traceId === first && isReplayed
    return isRight ? [] : [`${token}: ${traceId} after ${first}, ${isReplayed ? 'replayed' : 'new'}`]
  })
}
