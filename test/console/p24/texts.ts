import type { Locator, Page } from 'playwright-core'
import type { Guarantee } from '../../harness/guarantee.ts'
import { startConsole } from '../support/console.ts'
import { goTo } from '../support/two-people.ts'
import { longest, longestOf } from './longest.ts'
import { MockedAsks } from './mocked-asks.ts'

const SIZE = 60_000

/** What has taken parsers of Markdown, diffs, JSON and terminals long, and what is wide, deep or hidden. */
const PARTS = [
  ...[
    '*a_',
    '_a*',
    '**a_',
    '~a*',
    '*a[',
    '[*a_',
    '[a](',
    '![a](<',
    '`` ` ',
    '<a ',
    '&',
    '\\',
    '|a|\n|-|\n',
    '> ',
    '- - ',
  ],
  ...[
    '* a\n',
    '1) a\n',
    '- a\n  ',
    '\n\n',
    '```\n',
    '[a]: b\n',
    'a',
    'a ',
    '\n',
    '\r',
    '+a\n-b\n',
    '{"a":',
    '[',
    '"',
    '1,',
  ],
  ...['\u001b[31m', '\u202e', '\u200b', '\u{e0061}', 'e\u0301', '字', '👩‍👩‍👧', 'א1', '\uf900'],
  ...['\u0001a', '\ue000a', '字a', '👩a'],
]

/** A message is no blank alone. */
const sized = (part: string) =>
  `${part.trim() === '' ? 'a' : ''}${part.repeat(Math.ceil(SIZE / part.length))}`.slice(0, SIZE)

/** Puts a text into the field with the focus, as a person does. */
async function paste(page: Page, text: string): Promise<void> {
  await page.evaluate(`(${COPY})(${JSON.stringify(text)})`)
  await page.keyboard.press('Control+v')
}

/** A field keeps each line that is pasted by itself: to select and delete them takes long where the browser has to look for what is not drawn. */
async function pasteAndDelete(page: Page, field: Locator): Promise<void> {
  await field.fill('')
  await paste(page, `${'a line'.repeat(3)} of 24\n`.repeat(2_499))
  if ((await field.inputValue()).length < 50_000) throw new Error('the field has not taken what was pasted')
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  if ((await field.inputValue()) !== '') throw new Error('the field has kept what was deleted')
}

const COPY = `(text) => {
  const field = document.activeElement
  const other = document.body.appendChild(document.createElement('textarea'))
  other.value = text
  other.select()
  document.execCommand('copy')
  other.remove()
  field.focus()
}`

/** 60,000 characters of each part in a chat, in requests that wait, and in the editor of a plan: no task takes long. */
export async function tryTexts(count: number): Promise<Guarantee[]> {
  const pages = await startConsole()
  const found = new Map<string, { ms: number; part: string }>()
  const note = (place: string, part: string, ms: number) => {
    if (ms > (found.get(place)?.ms ?? 0)) found.set(place, { ms, part })
  }
  const parts = PARTS.slice(0, count)
  try {
    const page = await pages.open('/')
    for (const [i, part] of parts.entries()) {
      const messages = [
        { role: 'user', content: sized(part) },
        { role: 'assistant', content: sized(part) },
      ]
      await pages.product.call('POST', '/sessions', { session_id: `text-${i}`, messages })
      const open = async () => {
        await goTo(page, pages.at(`/chat/text-${i}`))
        await page.locator('.exchange').first().waitFor()
      }
      note('a chat', part, await longestOf(page, open))
    }
    const asks = await MockedAsks.in(pages, page)
    const calls = parts.flatMap((part) => {
      const text = sized(part)
      const diff = `--- a\n+++ a\n@@ -0,0 +1 @@\n+${text.replaceAll('\n', '\n+')}\n`
      return [
        { name: 'Bash', input: { command: text }, preview: { kind: 'command', command: text } as const },
        { name: 'mcp__a__b', input: { text } },
        { name: 'Write', input: { path: 'a', content: text }, preview: { kind: 'diff', path: 'a', diff } as const },
      ]
    })
    for (const [i, call] of calls.entries()) {
      if (i % 30 === 0) await asks.open([{ name: 'a', input: {} }, ...calls.slice(i, i + 30)])
      const ms = await longestOf(page, () => asks.show((i % 30) + 1))
      note(`a request of ${call.name}`, parts[Math.floor(i / 3)] ?? '', ms)
    }
    await goTo(page, pages.at('/plans/new'))
    const editor = page.getByLabel('Plan', { exact: true })
    for (const part of parts) note('the editor', part, await longestOf(page, () => editor.fill(sized(part))))
    for (const time of ['first', 'second'])
      note(
        'the editor',
        `as many lines as it takes, ${time} time`,
        await longestOf(page, () => pasteAndDelete(page, editor)),
      )
    await goTo(page, pages.at('/chat/text-0'))
    const composer = page.locator('.composer textarea')
    await composer.waitFor()
    note('the composer', 'as many lines as it takes', await longestOf(page, () => pasteAndDelete(page, composer)))
    pages.expectNoFaults()
  } finally {
    await pages.close()
  }
  return [...found].map(([place, { ms, part }]) =>
    longest(`${parts.length} texts of ${SIZE} characters in ${place}`, ms, `slowest ${JSON.stringify(part)}`),
  )
}
