export type Sample = { name: string; labels: Record<string, string>; value: number }

/** Parses a page of Prometheus's text format strictly. */
export type Page = { types: ReadonlyMap<string, string>; samples: readonly Sample[]; value(series: string): number }

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"'
const COMMENT = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?\\})? (\\S+)$`)
const NUMBER = /^[+-]?(\d+(\.\d+)?(e[+-]?\d+)?|nan|inf)$/i
const SUFFIX = /_(bucket|sum|count)$/

/** Throws on a line that does not match the format or that no TYPE line precedes. */
export function parsePage(text: string): Page {
  const types = new Map<string, string>()
  const samples = new Map<string, Sample>()
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, kind, subject = '', rest = ''] = COMMENT.exec(line) ?? []
    if (kind === 'TYPE') types.set(subject, rest)
    if (kind !== undefined) continue
    const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
    if (!NUMBER.test(value)) throw new Error(`no sample: ${line}`)
    if (!types.has(name) && types.get(name.replace(SUFFIX, '')) !== 'histogram') throw new Error(`no TYPE: ${line}`)
    const series = labels === '' ? name : `${name}{${labels}}`
    if (samples.has(series)) throw new Error(`twice: ${series}`)
    samples.set(series, { name, labels: labelsOf(labels), value: Number(value.replace(/inf$/i, 'Infinity')) })
  }
  return {
    types,
    samples: [...samples.values()],
    value: (series) => samples.get(series)?.value ?? Number.NaN,
  }
}

const labelsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', value = '']) => [key, value]),
  )
