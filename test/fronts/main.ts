import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect, parseArgs } from 'node:util'
import { startMongoInMemory } from '../support/mongo-in-memory.ts'
import { type StartProduct, startMembers, startStandalone } from '../support/product.ts'
import { Chat, type Front } from './chat.ts'
import { GUIDE_FRONTS } from './guide-pages.ts'
import { installedFronts } from './installed-pages.ts'
import { STORIES } from './stories.ts'
import { World } from './world.ts'

const USAGE = `usage: npm run try:fronts -- [--form standalone|cluster] [--only PATTERN] [--story PATTERN] [--folder PATH]

Plays what people do in a chat with the pages of other products' packages, unmodified, in Chromium, and compares after each story what the model
reads with what the page shows, in both forms one after the other. Prints a table of stories and packages for each form, and exits with 1 when
something else is seen. It takes minutes.
`

/** The cluster has a MongoDB, as a chat needs it whose workers come and go. */
const FORMS: Readonly<Record<string, StartProduct>> = {
  standalone: startStandalone,
  async cluster(env) {
    const mongo = await startMongoInMemory()
    const product = await startMembers({ MONGODB_URL: mongo.url, ...env })
    const { close } = product
    async function closeAll(): Promise<void> {
      await close()
      await mongo[Symbol.asyncDispose]()
    }
    return Object.assign(product, { close: closeAll })
  },
}

const { values } = parseArgs({
  options: {
    form: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    story: { type: 'string', default: '' },
    folder: { type: 'string', default: join(tmpdir(), 'agent-engine-try-fronts') },
    help: { type: 'boolean', default: false },
  },
})

/** Plays a story in a chat of its own. Returns what is seen. */
async function see(world: World, front: Front, name: string): Promise<string> {
  const lack = front.lacks[name]
  if (lack !== undefined) return `– ${lack}`
  let chat: Chat | undefined
  try {
    chat = await Chat.open(world, front)
    await chat.askAndRead()
    await STORIES[name]?.(chat)
    await chat.compare()
    return 'ok'
  } catch (cause) {
    process.stderr.write(`${inspect(cause)}\n`)
    return (cause as Error).message.split('\n').slice(0, 3).join(' ')
  } finally {
    await chat?.page.close()
  }
}

/** Prints a row for each story. One that goes wrong may leave answers of the model behind, so that the next one begins with another product. */
async function play(form: string, start: StartProduct, fronts: readonly Front[]): Promise<boolean> {
  let isAllAsMeant = true
  let world: World | undefined
  print([form, ...fronts.map(({ title }) => title)])
  print(['', ...fronts].map(() => '---'))
  for (const name of Object.keys(STORIES).filter(isMeant(values.story))) {
    const row = [name]
    for (const front of fronts) {
      world ??= await World.open({ offlineMs: 5_000, patienceMs: 15_000, start })
      const seen = await see(world, front, name)
      row.push(seen)
      if (seen === 'ok' || seen.startsWith('–')) continue
      isAllAsMeant = false
      await world.close()
      world = undefined
    }
    print(row)
  }
  await world?.close()
  return isAllAsMeant
}

const isMeant = (pattern: string) => (name: string) => new RegExp(pattern).test(name)

async function main(): Promise<boolean> {
  const all = [...GUIDE_FRONTS, ...(await installedFronts(values.folder))]
  const fronts = all.filter(({ title }) => isMeant(values.only)(title))
  let isAllAsMeant = true
  for (const [form, start] of Object.entries(FORMS)) {
    if (isMeant(values.form)(form) && !(await play(form, start, fronts))) isAllAsMeant = false
  }
  return isAllAsMeant
}

const print = (cells: readonly string[]): boolean => process.stdout.write(`| ${cells.join(' | ')} |\n`)

if (values.help) process.stdout.write(USAGE)
else process.exit((await main()) ? 0 : 1) // A runtime of a page would keep the process.
