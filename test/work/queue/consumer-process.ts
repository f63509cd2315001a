import { createBullConsume } from '../../../shared/work/queue/bullmq-consume.ts'

// Takes jobs of the Redis at argv[2] as the owner of argv[4], prints a line for each, and never ends one.

const [, , url = '', times = '', owner = ''] = process.argv
const say = (line: string) => process.stdout.write(`${line}\n`)
const onProblem = (message: string, cause: unknown) => say(`${message}: ${String(cause)}`)
const consume = createBullConsume({ url, onProblem, times: JSON.parse(times) })
const forever = () => new Promise<void>(() => {})
await consume(
  'flow',
  (job) => {
    say(`took ${JSON.stringify(job)}`)
    return forever()
  },
  { owner: () => owner, concurrency: 1, onGivenUp: forever },
)
