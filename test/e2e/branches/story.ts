import fc from 'fast-check'
import type { ModelServer } from '../../support/model-server/model-server.ts'
import type { Page, Shown } from './page.ts'

export type Act = {
  kind: 'send' | 'edit' | 'again' | 'branch' | 'fail' | 'refuse' | 'kill'
  pick: number
  keepsId: boolean
}

const KINDS = ['send', 'send', 'edit', 'edit', 'again', 'branch', 'fail', 'refuse'] as const

export const actsOf = (kinds: readonly Act['kind'][] = KINDS, { minLength = 4, maxLength = 9 } = {}) =>
  fc.array(fc.record({ kind: fc.constantFrom(...kinds), pick: fc.nat(), keepsId: fc.boolean() }), {
    minLength,
    maxLength,
  })

/** Such a story with two kills in it. */
export const killsOf = () =>
  fc
    .tuple(actsOf(KINDS, { minLength: 4, maxLength: 6 }), fc.nat(), fc.nat())
    .map(([acts, first, second]) =>
      [first, second].reduce<readonly Act[]>(
        (story, place) => story.toSpliced(1 + (place % story.length), 0, KILL),
        acts,
      ),
    )

const KILL: Act = { kind: 'kill', pick: 0, keepsId: false }

type Told = { page: readonly Shown[]; model: readonly unknown[] }

/** Plays a story on a page. Returns what the page has shown and the model has read at each request that reached the model. */
export async function play(
  page: Page,
  acts: readonly Act[],
  { model, kill }: { model: ModelServer; kill?(): Promise<void> },
) {
  const told: Told[] = []
  const lists: Shown[][] = []
  for (const [i, { kind, pick, keepsId }] of acts.entries()) {
    const before = model.requests.length
    const shown: Shown[] = page.messages
    lists.push(shown)
    const users = shown.filter((message) => message.role === 'user' && !message.wasRefused)
    const picked = (from: readonly Shown[]) => from[pick % from.length]?.id ?? ''
    model.otherwise(() => (kind === 'fail' ? { status: 400 } : `answer ${i}`))
    if (kind === 'kill') await kill?.()
    else if (kind === 'branch') page.messages = lists[pick % lists.length] ?? []
    else if (kind === 'edit' && users.length > 0) await page.edit(picked(users), `edited ${i}`, { keepsId })
    else if (kind === 'again' && users.length > 0) await page.regenerate(picked(users))
    else await page.send(`text ${i}`, { isAttached: kind === 'refuse' })
    for (const { body } of model.requests.slice(before))
      told.push({ page: read(page.messages), model: body['messages'] as unknown[] })
  }
  return told
}

/** What the model has to have read when the page has shown this: an answer to the request is behind it. */
function read(messages: readonly Shown[]): Shown[] {
  return messages
    .slice(0, messages.findLastIndex(({ role }) => role === 'user') + 1)
    .filter(({ wasRefused }) => !wasRefused)
}

/** A request joins messages of the user that follow one another: a run between them has failed. */
export const asRequest = (messages: readonly Shown[]) =>
  messages.reduce<{ role: string; content: string }[]>((said, { role, text: content }) => {
    const last = said.at(-1)
    if (role !== 'user' || last?.role !== 'user') return [...said, { role, content }]
    return [...said.slice(0, -1), { role, content: `${last.content}\n\n${content}` }]
  }, [])
