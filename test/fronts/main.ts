import { parseArgs } from 'node:util'
import { Chat, type Front } from './chat.ts'
import { GUIDE_FRONTS } from './guide-pages.ts'
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
    return (cause as Error).message.split('\n').slice(0, 3).join(' ')
  } finally {
    await chat?.page.close()
  }
}

async function main(): Promise<number> {
  const world = await World.open({ offlineMs: 5_000, patienceMs: 15_000 })
  const rows: string[] = []
  let failed = 0
  try {
    const fronts = GUIDE_FRONTS.filter(({ title }) => new RegExp(values.only).test(title))
    for (const name of Object.keys(STORIES).filter((each) => new RegExp(values.story).test(each)))
      for (const front of fronts) {
        const seen = await see(world, front, name)
        if (seen !== 'ok' && !seen.startsWith('–')) failed++
        rows.push(`${name} | ${front.title} | ${seen}`)
        process.stdout.write(`${rows.at(-1)}\n`)
      }
  } finally {
    await world.close()
  }
  return failed
}

if (values.help) process.stdout.write(USAGE)
else process.exitCode = (await main()) > 0 ? 1 : 0
