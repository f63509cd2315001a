import { readFile } from 'node:fs/promises'
import { bundle } from './bundle.ts'
import type { Front } from './chat.ts'
import { ChatPage } from './chat-page.ts'
import type { World } from './world.ts'

const guide = await readFile(new URL('../../shared/platform/api/guide.md', import.meta.url), 'utf8')
const sources = [...guide.matchAll(/^```tsx\n([^]*?)^```$/gm)].map(([, source = '']) => source)

type Page = {
  /** The package that the page of the guide imports. */
  name: string
  /** The names under which other versions of its packages are installed. */
  older?: Readonly<Record<string, string>>
  lacks: Front['lacks']
}

const NO_ATTACHMENTS = { 'a refused attachment, and the next message': 'the page takes none' }
const USE_CHAT = {
  name: '@ai-sdk/react',
  lacks: { 'a branch back and on': 'the package has none', ...NO_ATTACHMENTS },
}

const PAGES: Readonly<Record<string, Page>> = {
  'assistant-ui': {
    name: '@assistant-ui/react',
    lacks: { ...NO_ATTACHMENTS, 'a tool of the page': 'the page has none' },
  },
  'useChat of ai 7': USE_CHAT,
  'useChat of ai 6': { ...USE_CHAT, older: { ai: 'ai-6', '@ai-sdk/react': 'ai-sdk-react-3' } },
}

/** The pages of the guide, word for word. */
export const GUIDE_FRONTS: readonly Front[] = Object.entries(PAGES).map(([title, page]) => {
  const source = async ({ api }: World) => bundle(sourceOf(page).replace('http://127.0.0.1:8080/v1', api))
  return { title, open: openPage(source), lacks: page.lacks }
})

/** Opens pages whose script for the API of a world is made once. */
export function openPage(scriptOf: (world: World) => Promise<string>): Front['open'] {
  const scripts = new WeakMap<World, Promise<string>>()
  return async (world, id) => {
    const script = scripts.get(world) ?? scriptOf(world)
    scripts.set(world, script)
    return openScript(world, await script, id)
  }
}

async function openScript(world: World, script: string, id?: string): Promise<ChatPage> {
  const page = await world.browser.newPage()
  page.setDefaultTimeout(world.patienceMs)
  await page.goto(world.serve(script) + (id === undefined ? '' : `#${id}`))
  return new ChatPage(page)
}

function sourceOf({ name, older = {} }: Page): string {
  const source = sources.find((each) => each.includes(`from '${name}'`))
  if (source === undefined) throw new Error(`the guide has no page with ${name}`)
  return Object.entries(older).reduce((text, [each, as]) => text.replace(`from '${each}'`, `from '${as}'`), source)
}
