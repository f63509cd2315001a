import { parseArgs } from 'node:util'
import { makeTempFolder } from '../support/temp-folder.ts'
import { Engine } from './engine.ts'
import { buildProduct, provideImages } from './images.ts'
import { runManifests } from './kubernetes/run-manifests.ts'
import type { Part } from './part.ts'
import { confined } from './parts/confined.ts'
import { failures } from './parts/failures.ts'
import { image } from './parts/image.ts'
import { roll } from './parts/roll.ts'
import { settings } from './parts/settings.ts'
import { use } from './parts/use.ts'
import { unpackRelease } from './release.ts'
import { World } from './world.ts'

const USAGE = `npm run deploy:test -- [options]
Builds the image of deploy/, and runs the pods of the Helm chart and the cluster of compose.yaml with real containers. Without a Docker engine
that answers, it installs and starts one, and makes the images of Node, Redis, nginx and MongoDB, which it keeps. It takes about a quarter of an hour.
  --only PATTERN      runs only the parts whose promise matches the pattern, after the cluster has started and been used
  --only kubernetes   runs only the pods of the chart
`
const { values } = parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean' } } })
const say = (line: string) => void process.stdout.write(`${line}\n`)
if (values.help) {
  say(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

let isAllKept = true

/** Runs a part and prints how it went. Returns whether its promise was kept. */
async function report(promise: string, run: () => Promise<void>): Promise<boolean> {
  const from = performance.now()
  const failure = await run().then(
    () => undefined,
    (cause: unknown) => cause,
  )
  const secs = ((performance.now() - from) / 1000).toFixed(1)
  say(`${failure === undefined ? 'ok    ' : 'BROKEN'} ${secs.padStart(6)} s  ${promise}`)
  if (failure === undefined) return true
  isAllKept = false
  say(failure instanceof Error ? (failure.stack ?? failure.message) : String(failure))
  return false
}

const later: readonly Part[] = [...roll, ...failures, ...confined, ...settings]
const chosen = later.filter(({ promise }) => new RegExp(values.only ?? '').test(promise))

await using engine = await Engine.start(say)
await using folder = await makeTempFolder()
await using world = await World.open(engine, folder.path)
await report('the images of others are there', () => provideImages(engine, say))
await report('the image is built from an unpacked release', async () => {
  await unpackRelease(folder.path)
  await buildProduct(engine, 'agent-engine', folder.path)
})
if (values.only === undefined || values.only === 'kubernetes') await runManifests(engine, report)
if (values.only !== 'kubernetes') await runCompose()
say(isAllKept ? 'all kept' : 'BROKEN: see above')
process.exitCode = isAllKept ? 0 : 1

async function runCompose(): Promise<void> {
  for (const { promise, run } of image) await report(promise, () => run(world))
  const isStarted = await report('the commands of README.md start a healthy cluster', async () => {
    await world.start()
    await world.startOutside()
  })
  for (const { promise, run } of isStarted ? [...use, ...chosen] : []) await report(promise, () => run(world))
}
