import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import type { Job, Report } from './job.ts'
import { planOf } from './plan.ts'
import { PLANTED } from './planted.ts'
import { shrink } from './shrink.ts'
import { simulate } from './simulation.ts'

const USAGE = `Simulates whole clusters under faults, each in one process and on a clock of its own, and checks the promises of the relay.

  node test/simulation/main.ts [--seeds 300] [--first 1] [--threads 2] [--keep-going]
  node test/simulation/main.ts --seed 42     one seed: shrinks a failure, and tells what happens
  node test/simulation/main.ts --bugs        plants bugs, and counts the seeds until each is found, at most as many as --seeds
  node test/simulation/main.ts --bug fence   plants those with this text in their names

It ends with 1 when a promise was broken, or a bug was not found.`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    threads: { type: 'string', default: String(Math.min(availableParallelism(), 8)) },
    'keep-going': { type: 'boolean', default: false },
    bugs: { type: 'boolean', default: false },
    bug: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const [first, seeds, threads] = [values.first, values.seeds, values.threads].map(wholeNumber) as [
  number,
  number,
  number,
]
if (values.help) say(USAGE)
else if (values.seed !== undefined) await tell(wholeNumber(values.seed))
else if (values.bugs || values.bug !== undefined) await findBugs(values.bug ?? '')
else await simulateAll()

async function simulateAll(): Promise<void> {
  const began = performance.now()
  const { count, turns, moved, failed } = await inThreads(undefined)
  const secs = (performance.now() - began) / 1_000
  for (const { seed, violation } of failed) say(`seed ${seed}: ${violation?.rule}: ${violation?.what}`)
  const [firstFailed] = failed
  if (firstFailed) await tell(firstFailed.seed)
  say(
    `${count} seeds in ${secs.toFixed(1)} s, ${turns} turns, ${moved} with a run that went on elsewhere, ${failed.length} failed`,
  )
}

async function findBugs(text: string): Promise<void> {
  for (const [bug, { name }] of PLANTED.entries()) {
    if (!name.includes(text)) continue
    const { count, failed } = await inThreads(bug)
    const [found] = failed
    say(
      `${found ? `found after ${count} seeds` : `NOT found in ${count} seeds`}: ${name}${found ? ` (${found.violation?.rule})` : ''}`,
    )
    if (!found) process.exitCode = 1
  }
}

/** Divides the seeds among threads. */
async function inThreads(bug: number | undefined): Promise<Report> {
  const jobs = Array.from({ length: threads }, (_, i) => ({
    first: first + i,
    count: Math.ceil((seeds - i) / threads),
    step: threads,
    isKeptGoing: values['keep-going'],
    bug,
  }))
  const reports = await Promise.all(jobs.map(inThread))
  const sum = (of: (report: Report) => number) => reports.reduce((total, report) => total + of(report), 0)
  return {
    count: sum(({ count }) => count),
    turns: sum(({ turns }) => turns),
    moved: sum(({ moved }) => moved),
    failed: reports.flatMap(({ failed }) => failed),
  }
}

function inThread(job: Job): Promise<Report> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('job.ts', import.meta.url), { workerData: job })
    thread.once('message', resolve)
    thread.once('error', reject)
  })
}

/** Says what happens with this seed, with as little as it takes. */
async function tell(seed: number): Promise<void> {
  const plan = planOf(seed)
  const outcome = await simulate(plan)
  const { story } = outcome.violation ? await shrink(plan, outcome.violation) : outcome
  for (const line of story) say(line)
  if (!outcome.violation) return say(`seed ${seed} keeps the promises`)
  say(`Again: node test/simulation/main.ts --seed ${seed}`)
  process.exitCode = 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`'${text}' is not a whole number\n\n${USAGE}`)
  return Number(text)
}
