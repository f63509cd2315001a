import { eventLoop } from '../../../kernel/async/loop-budget.ts'

/** Elements whose content a browser does not show as text. */
const HIDDEN = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'canvas'])
const HEADINGS: Record<string, string> = { h1: '# ', h2: '## ', h3: '### ', h4: '#### ', h5: '##### ', h6: '###### ' }
const PARAGRAPHS = new Set(
  'title p div section article main header footer nav aside form figure ul ol dl table blockquote pre hr h1 h2 h3 h4 h5 h6'.split(
    ' ',
  ),
)
const LINES = new Set(['br', 'li', 'tr', 'dt', 'dd', 'option', 'caption'])
const CELLS = new Set(['td', 'th'])

/**
 * Reduces an HTML page to its visible text, with marks for headings and list items and with links as `[text](address)`.
 * Takes time linear in the page's length for any input and yields to the event loop. A comment or hidden element that is
 * never closed reaches to the end of the page.
 */
export async function toReadableText(html: string, baseUrl: string): Promise<string> {
  const out: string[] = []
  let link: string | undefined
  let preformatted = 0
  for (const token of tokens(html)) {
    const pause = eventLoop.enter()
    if (pause) await pause
    if (typeof token === 'string') {
      out.push(preformatted > 0 ? decodeEntities(token) : decodeEntities(token).replaceAll(/\s+/g, ' '))
      continue
    }
    const { name, isEnd, source } = token
    if (name === 'pre') preformatted = Math.max(0, preformatted + (isEnd ? -1 : 1))
    if (name === 'a') {
      if (link !== undefined) out.push(`](${link})`)
      link = isEnd ? undefined : addressOf(source, baseUrl)
      if (link !== undefined) out.push('[')
    } else out.push(spacing(name, isEnd))
  }
  return tidy(out.join(''))
}

type Tag = { name: string; isEnd: boolean; source: string }

/** Splits the page into texts and tags, without comments, declarations and hidden elements. */
function* tokens(html: string): Generator<string | Tag> {
  const tagStart = /<(\/?)([a-z][a-z0-9-]{0,30})(?=[\s/>])|<!--|<[!?]/gi
  let end = 0
  for (let match = tagStart.exec(html); match; match = tagStart.exec(html)) {
    if (match.index > end) yield html.slice(end, match.index)
    const name = match[2]?.toLowerCase()
    end = match[0] === '<!--' ? indexAfter(html, '-->', match.index) : tagEnd(html, tagStart.lastIndex)
    const tag = { name: name ?? '', isEnd: match[1] === '/', source: html.slice(match.index, end) }
    if (name !== undefined) yield tag
    if (HIDDEN.has(tag.name) && !tag.isEnd) end = indexOfEndTag(html, tag.name, end)
    tagStart.lastIndex = end
  }
  yield html.slice(end)
}

/** The index after a tag. A `>` within quotes does not end it. */
function tagEnd(html: string, start: number): number {
  const stop = /["'>]/g
  stop.lastIndex = start
  for (let match = stop.exec(html); match; match = stop.exec(html)) {
    if (match[0] === '>') return stop.lastIndex
    stop.lastIndex = indexAfter(html, match[0], stop.lastIndex)
  }
  return html.length
}

function indexAfter(html: string, text: string, start: number): number {
  const at = html.indexOf(text, start)
  return at === -1 ? html.length : at + text.length
}

function indexOfEndTag(html: string, name: string, start: number): number {
  const close = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
  close.lastIndex = start
  return close.exec(html)?.index ?? html.length
}

function spacing(name: string, isEnd: boolean): string {
  if (PARAGRAPHS.has(name)) return `\n\n${isEnd ? '' : (HEADINGS[name] ?? '')}`
  if (LINES.has(name)) return name === 'li' && !isEnd ? '\n- ' : '\n'
  return CELLS.has(name) && !isEnd ? '\t' : ''
}

function addressOf(tag: string, baseUrl: string): string | undefined {
  const [, double, single, bare] = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i.exec(tag.slice(0, 4_096)) ?? []
  const href = decodeEntities(double ?? single ?? bare ?? '')
  if (href === '' || href.startsWith('#')) return undefined
  const url = URL.parse(href, baseUrl)
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url.href : undefined
}

const ENTITIES = new Map<string, string>([
  ['nbsp', ' '],
  ['shy', ''],
  ...pairs(
    'amp & lt < gt > quot " apos \' copy © reg ® trade ™ hellip … ndash – mdash — lsquo ‘ rsquo ’ ldquo “ rdquo ”',
  ),
  ...pairs('laquo « raquo » bull • middot · times × deg ° euro € pound £ sect \u00a7 larr ← rarr →'),
])

function pairs(text: string): [string, string][] {
  return [...text.matchAll(/(\w+) (\S)/g)].map(([, name = '', character = '']) => [name, character])
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return ENTITIES.get(name) ?? ENTITIES.get(name.toLowerCase()) ?? whole
    const point = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return point > 0 && point <= 0x10_ffff ? String.fromCodePoint(point).toWellFormed() : '\uFFFD'
  })
}

/** Works line by line, because a pattern such as /\s+\n/ takes quadratic time on long runs of spaces. */
function tidy(text: string): string {
  const lines = text.split('\n').map((line) => line.trimEnd())
  const kept = lines.filter((line, index) => line !== '' || lines[index - 1] !== '')
  return kept.join('\n').trim()
}
