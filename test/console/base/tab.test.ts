import { glob, readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { parseSync } from 'vite'

const ROOT = new URL('../../../services/console/', import.meta.url).pathname
/** The one object, and what it is dropped by. */
const THE_TAB = 'base/tab.ts'
/** What makes no state outside the tab: its parts, components, places of the page, and formats. */
const MAKERS = /^(ofTab|lazy|memo|document\.querySelector|new Intl\.\w+)\b/
/** What a browser keeps. The sign-in alone uses it. */
const STORES =
  /\b(localStorage|sessionStorage|indexedDB|caches|serviceWorker|cookieStore|BroadcastChannel|document\.cookie|globalThis\[)/

/** The places where a module keeps something that may change, outside its functions. */
function statesOf(file: string, source: string): string[] {
  const { program } = parseSync(file, source)
  const textOf = ({ start, end }: Node) => source.slice(start, end)
  const found: string[] = []
  for (const statement of program.body as unknown as Node[]) {
    const declared = (statement.declaration as Node | undefined) ?? statement
    if (declared.type === 'VariableDeclaration')
      for (const each of declared.declarations ?? []) if (mayChange(declared, each, textOf)) found.push(textOf(each))
    if (declared.type === 'ClassDeclaration' && /^\s*(static|accessor) /m.test(textOf(declared)))
      found.push(textOf(declared))
    if (
      declared.type === 'ExpressionStatement' &&
      /^(?!await |void |watch|addEventListener)[\w.[\]'"]+\s*(=|\|\||\?\?)/.test(textOf(declared))
    )
      found.push(textOf(declared))
  }
  return found.map((text) => `${file}: ${text.split('\n')[0]}`)
}

type Node = {
  type: string
  start: number
  end: number
  kind?: string
  declaration?: unknown
  declarations?: Node[]
  init?: Node | null
  id?: Node
  expression?: Node
}

function mayChange(declaration: Node, { id, init }: Node, textOf: (node: Node) => string): boolean {
  if (declaration.kind !== 'const') return true
  if (!init) return true
  const value = init.type === 'TSSatisfiesExpression' ? (init.expression as Node) : init
  const text = textOf(value)
  if (['ArrowFunctionExpression', 'Literal', 'TemplateLiteral'].includes(value.type)) return false
  if (value.type === 'TSAsExpression' && /\bas const$/.test(text)) return false
  if (['ArrayExpression', 'ObjectExpression', 'NewExpression', 'CallExpression'].includes(value.type))
    return !(MAKERS.test(text) || isReadonly(id ? textOf(id) : '') || /^new Set\(\[[^\]]*\]\)$/.test(text))
  return ![
    'BinaryExpression',
    'Identifier',
    'MemberExpression',
    'TSAsExpression',
    'ConditionalExpression',
    'UnaryExpression',
    'JSXElement',
    'ParenthesizedExpression',
  ].includes(value.type)
}

/** The type forbids to change it. */
const isReadonly = (name: string) => /:\s*(readonly |Readonly)/.test(name)

describe('what a tab of the console knows', () => {
  const sources = new Map<string, string>()

  before(async () => {
    for await (const file of glob('**/*.{ts,tsx}', { cwd: ROOT, exclude: (name) => name.startsWith('built') }))
      sources.set(file, await readFile(ROOT + file, 'utf8'))
  })

  it('stands in the one object that is dropped at the sign-out: no module keeps anything that changes', () => {
    expect(sources.size).to.be.above(150)
    const others = [...sources].filter(([file]) => file !== THE_TAB)
    expect(others.flatMap(([file, source]) => statesOf(file, source))).to.deep.equal([])
  })

  it('is not kept by the browser, which has what the sign-in needs, and the views of lists that a person has saved', () => {
    const users = [...sources].filter(([, source]) => STORES.test(source)).map(([file]) => file)
    const allowed = [
      'base/browser-store.ts',
      'pages/activity/list/kept-views.ts',
      'sign-in/oidc.ts',
      'sign-in/session.ts',
    ]
    expect(users.toSorted()).to.deep.equal(allowed)
  })

  for (const state of [
    'let last = 0',
    'export let last: string | undefined',
    'const open = new Map<string, string>()',
    'export const asks = signal([])',
    'const seen: string[] = []',
    'const cache = {}',
    'const weak = new WeakMap()',
    'export const first = computed(() => 1)',
    'class Kept {\n  static last = 0\n}',
    "globalThis.last = 'a'",
    'const loaded = await read()',
    'const all = makeAll()',
  ])
    it(`the search finds \`${state.split('\n')[0]}\``, () => {
      expect(statesOf('a.ts', state)).to.have.length(1)
    })
})
