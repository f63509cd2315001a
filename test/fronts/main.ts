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
    if (process.env['DEBUG'])
      process.stdout.write(
        `${inspect(cause)}\n${chat?.page.failures.join()}\n${await chat?.page.page.locator('body').innerHTML()}\n`,
      )
    return (cause as Error).message.split('\n').slice(0, 3).join(' ')
  } finally {
    await chat?.page.close()
  }
}

/** A story that goes wrong may leave answers of the model behind, so that the next one begins with another product. */
async function main(): Promise<number> {
  const fronts = [...GUIDE_FRONTS, ...(await installedFronts(values.folder))].filter(({ title }) =>
    new RegExp(values.only).test(title),
  )
  let failed = 0
  let world: World | undefined
  for (const name of Object.keys(STORIES).filter((each) => new RegExp(values.story).test(each)))
    for (const front of fronts) {
      world ??= await World.open({ offlineMs: 5_000, patienceMs: Number(process.env['P'] ?? 15_000) })
      const seen = await see(world, front, name)
      process.stdout.write(`${name} | ${front.title} | ${seen}\n`)
      if (seen === 'ok' || seen.startsWith('–')) continue
      failed++
      await world.close()
      world = undefined
    }
  await world?.close()
  return failed
}

if (values.help) process.stdout.write(USAGE)
else process.exit((await main()) > 0 ? 1 : 0) // A runtime of a page would keep the process.
