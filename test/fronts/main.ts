import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect, parseArgs } from 'node:util'
import { Chat, type Front } from './chat.ts'
import { GUIDE_FRONTS } from './guide-pages.ts'
import { installedFronts } from './installed-pages.ts'
import { STORIES } from './stories.ts'
import { World } from './world.ts'

const USAGE = `usage: npm run try:fronts -- [--only PATTERN] [--story PATTERN] [--folder PATH]

Plays what people do in a chat with the pages of other products' packages, unmodified, in Chromium, and compares after each story what the model
reads with what the page shows. Prints a table of stories and packages, and exits with 1 when something else is seen. It takes minutes.
`

const { values } = parseArgs({
  options: {
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
async function main(): Promise<boolean> {
  const isMeant = (pattern: string) => (name: string) => new RegExp(pattern).test(name)
  const fronts = [...GUIDE_FRONTS, ...(await installedFronts(values.folder))].filter(({ title }) =>
    isMeant(values.only)(title),
  )
  let isAllAsMeant = true
  let world: World | undefined
  print(['', ...fronts.map(({ title }) => title)])
  print(['', ...fronts].map(() => '---'))
  for (const name of Object.keys(STORIES).filter(isMeant(values.story))) {
    const row = [name]
    for (const front of fronts) {
      world ??= await World.open({ offlineMs: 5_000, patienceMs: 15_000 })
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

const print = (cells: readonly string[]): boolean => process.stdout.write(`| ${cells.join(' | ')} |\n`)

if (values.help) process.stdout.write(USAGE)
else process.exit((await main()) ? 0 : 1) // A runtime of a page would keep the process.
