import { styleText } from 'node:util'

type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'dim' | 'bold'

const SYMBOLS = {
  utf8: { dot: '●', busy: '▸', ok: '✓', bad: '✗', ask: '?', sep: ' · ', cut: '…', prompt: '›', nested: '↳', bar: '│' },
  ascii: {
    dot: '*',
    busy: '>',
    ok: '+',
    bad: 'x',
    ask: '?',
    sep: ' - ',
    cut: '...',
    prompt: '>',
    nested: '-',
    bar: '|',
  },
}

/** Colours and symbols for one output. */
export type Style = { [Name in Colour]: (text: string) => string } & { symbols: (typeof SYMBOLS)['utf8'] }

export type StyleOptions = { hasColours: boolean; isUtf8: boolean }

export function createStyle({ hasColours, isUtf8 }: StyleOptions): Style {
  const paint = (colour: Colour) => (text: string) =>
    hasColours && text !== '' ? styleText(colour, text, { validateStream: false }) : text
  return {
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
    cyan: paint('cyan'),
    dim: paint('dim'),
    bold: paint('bold'),
    symbols: isUtf8 ? SYMBOLS.utf8 : SYMBOLS.ascii,
  }
}

type Env = Readonly<Record<string, string | undefined>>

/** The style that the output supports in this environment. `NO_COLOR` takes precedence over `FORCE_COLOR` (no-color.org). */
export function styleOptions(env: Env, isTerminal: boolean): StyleOptions {
  const isForced = Boolean(env['FORCE_COLOR']) && env['FORCE_COLOR'] !== '0'
  const hasColours =
    !env['NO_COLOR'] && env['FORCE_COLOR'] !== '0' && (isForced || (isTerminal && env['TERM'] !== 'dumb'))
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return { hasColours, isUtf8: /utf-?8/i.test(locale) }
}
