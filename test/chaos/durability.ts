import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isKept, renderGuarantees } from '../harness/guarantee.ts'
import { chooseSeed, Random } from '../harness/seed.ts'
import { type Kills, measureKills } from './scenarios/durable-runs/measure.ts'

const USAGE = `npm run chaos:durability -- [options]
Kills a worker with SIGKILL every ten seconds while clients talk in sessions, and replaces it (P21 in all its forms).
  --mode M        DURABILITY: runs (the default) or sessions
  --sessions N    clients, each with a session and its streams (200)
  --one-shots N   further clients, whose messages are one-shot runs (0)
  --sleep MS      between two of the 24 pieces of text of a run (400: a run of 10 s, a reply at a person's reading pace). Each client starts the
                  next run as soon as it has the end of one, so that 200 clients of short runs saturate two cores; the pause then shows how long
                  work waits for a core, and hardly a run is under way for long enough to be hit by a kill.
  --minutes N     for how long (10)
  --workers N     (4)
  --others        kills a gateway and an executor each minute, too
  --fail-over     Redis fails over once, in the middle
  --untimed       shows the pause without judging it, for a machine that is busy with other work
  --seed N        replays the faults of this seed
  --logs FOLDER   keeps what the processes print there, in a file for each
`
const EVERY_MS = 10_000
const MINUTE_MS = 60_000

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: 'runs' },
    sessions: { type: 'string', default: '200' },
    'one-shots': { type: 'string', default: '0' },
    sleep: { type: 'string', default: '400' },
    minutes: { type: 'string', default: '10' },
    workers: { type: 'string', default: '4' },
    others: { type: 'boolean', default: false },
    'fail-over': { type: 'boolean', default: false },
    untimed: { type: 'boolean', default: false },
    seed: { type: 'string' },
    logs: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const mode = values.mode === 'runs' || values.mode === 'sessions' ? values.mode : undefined
if (values.help || !mode) {
  process.stdout.write(USAGE)
  process.exit(values.help ? 0 : 1)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
const say = (line: string) => void process.stdout.write(`${line}\n`)
const kills: Kills = {
  mode,
  sessions: Number(values.sessions),
  oneShots: Number(values['one-shots']),
  sleepMs: Number(values.sleep),
  workers: Number(values.workers),
  forMs: Number(values.minutes) * MINUTE_MS,
  everyMs: EVERY_MS,
  killsOthers: values.others,
  failsOver: values['fail-over'],
}
const { logs } = values
if (logs !== undefined) mkdirSync(logs, { recursive: true })
const guarantees = await measureKills(kills, {
  random: new Random(chooseSeed(values.seed, say)),
  say,
  ...(logs !== undefined && { onOutput: (text, name) => appendFileSync(join(logs, `${name}.log`), text) }),
})
say(`\n${JSON.stringify(kills)}\n${renderGuarantees(guarantees)}`)
const judged = guarantees.filter(({ unit }) => !values.untimed || unit === '')
process.exit(judged.every(isKept) ? 0 : 1)
