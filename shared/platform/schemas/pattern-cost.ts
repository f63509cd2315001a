import type { RE2JS } from 're2js'

/** The most CPU time for testing one text. */
const TEST_MS = 20
/** A pattern that was measured as fast, and takes longer twice, tests only shorter texts from then on. */
const SLOW_MS = 2 * TEST_MS
/** Texts of this length are tested without a measurement: with a program of the largest size they take some 10 ms. */
const UNMEASURED_CHARS = 128
const LONGEST = 8_192
/** The most time for measuring a pattern. */
const MEASURE_MS = 2 * TEST_MS
/** The measurement ends when the texts take longer than this. */
const NOTABLE_MS = TEST_MS / 4
/** A text whose test takes longer is tested several times. */
const FAST_MS = 0.3
const REPEATS = 3
/** Some machines count CPU time in steps of this length. */
const CPU_TICK_MS = 4

/** The limits of one pattern, in a thread. They are measured when the first longer text comes. */
export class PatternCost {
  readonly #regex: RE2JS
  #maxChars: number | undefined
  #wasSlow = false

  constructor(regex: RE2JS) {
    this.#regex = regex
  }

  /** The characters of the longest text that is tested in time; short texts do not need to know it. */
  maxCharsFor(text: string): number {
    if (text.length <= UNMEASURED_CHARS) return UNMEASURED_CHARS
    this.#maxChars ??= Math.max(measureMaxChars(this.#regex), UNMEASURED_CHARS)
    return this.#maxChars
  }

  test(text: string): boolean {
    if (text.length <= UNMEASURED_CHARS) return this.#regex.test(text)
    const { isMatch, ms } = timedTest(this.#regex, text)
    if (ms > SLOW_MS && this.#wasSlow) this.#maxChars = Math.max(text.length >> 1, UNMEASURED_CHARS)
    if (ms > SLOW_MS) this.#wasSlow = true
    return isMatch
  }
}

/**
 * Tests texts made for this pattern, of growing length, until one kind of text is slow, or every instruction of the program may be
 * active. From then on the time is proportional to the length; before, it may grow with its square.
 */
function measureMaxChars(regex: RE2JS): number {
  const saturated = Math.min(Math.max(2 * regex.programSize(), 4 * UNMEASURED_CHARS), LONGEST)
  const kinds = hostileTexts(regex)
  let spentMs = 0
  for (let chars = UNMEASURED_CHARS; ; chars *= 2) {
    const times = kinds.map((textOf) => {
      const kind = spentMs > MEASURE_MS ? [] : testKind(regex, () => textOf(chars))
      spentMs += kind.reduce((sum, ms) => sum + ms, 0)
      return kind
    })
    if (spentMs > MEASURE_MS) return withinSquare(chars, Math.max(...times.flat()))
    const slowestMs = Math.max(...times.map((kind) => Math.min(...kind)))
    if (slowestMs > NOTABLE_MS) return withinSquare(chars, slowestMs)
    if ((chars >= saturated && slowestMs < FAST_MS) || chars >= LONGEST)
      return Math.floor((chars * TEST_MS) / shortestMs(regex, { kinds, chars, slowestMs }))
  }
}

/** Repeats a short measurement, because the limit for much longer texts is computed from it and one test may have taken longer by chance. */
function shortestMs(
  regex: RE2JS,
  { kinds, chars, slowestMs }: { kinds: readonly ((chars: number) => string)[]; chars: number; slowestMs: number },
): number {
  const repeated = kinds.map((textOf) => Array.from({ length: REPEATS }, () => timedTest(regex, textOf(chars)).ms))
  return Math.min(slowestMs, Math.max(...repeated.map((times) => Math.min(...times))))
}

const withinSquare = (chars: number, ms: number): number => Math.floor(chars * Math.sqrt(TEST_MS / ms))

/** The times of a few texts: one of them may have been delayed by garbage collection or compilation. */
function testKind(regex: RE2JS, text: () => string): number[] {
  const times: number[] = []
  while (times.length < REPEATS && !times.some((ms) => ms <= FAST_MS)) times.push(timedTest(regex, text()).ms)
  return times
}

/** `ms`: the CPU time of this thread, or the elapsed time if that is more precise. */
function timedTest(regex: RE2JS, text: string): { isMatch: boolean; ms: number } {
  const [from, cpuFrom] = [performance.now(), cpuMs()]
  const isMatch = regex.test(text)
  return { isMatch, ms: Math.min(performance.now() - from, cpuMs() - cpuFrom + CPU_TICK_MS) }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** The instructions of the engine's program that are read here. `out` and `arg` are the next ones. */
type Instruction = { op: number; out: number; arg: number; runes: ArrayLike<number> }
type Program = { inst: readonly Instruction[]; start: number }

/** The numbers that re2js gives to these instructions (`op`). */
const [ALT, ALT_MATCH, FAIL, MATCH, NOP] = [1, 2, 5, 6, 7]
/** How many different characters are repeated and mixed. */
const MAX_CHARS = 4
const SAMPLE = 512

/** Kinds of texts that keep many states of the pattern active. They end with a character that hardly any pattern matches. */
function hostileTexts(regex: RE2JS): ((chars: number) => string)[] {
  const { prog } = regex.re2() as unknown as { prog: Program }
  const random = createRandom()
  const wanted = [...new Set(walk(prog, SAMPLE, random))].slice(0, MAX_CHARS)
  const mixed = (chars: number) =>
    Array.from({ length: chars }, () => wanted[Math.floor(random() * wanted.length)]).join('')
  const kinds = [mixed, (chars: number) => walk(prog, chars, random), ...wanted.map((char) => char.repeat.bind(char))]
  return kinds.map((kind) => (chars) => `${kind(chars - 1)}\u0001`)
}

/** The characters of a random way through the program. It turns back before the end, so that the text does not match. */
function walk({ inst, start }: Program, chars: number, random: () => number): string {
  let text = ''
  let at = start
  for (let steps = 0; text.length < chars && steps < 8 * chars; steps++) {
    const { op, out, arg, runes } = inst[at] ?? { op: MATCH, out: start, arg: 0, runes: [] }
    const next = (op === ALT || op === ALT_MATCH) && random() < 0.5 ? arg : out
    const rune = runes[0]
    if (rune !== undefined) text += String.fromCodePoint(rune)
    else if (op > MATCH && op !== NOP) text += 'a'
    at = op === MATCH || op === FAIL ? start : next
  }
  return text.padEnd(chars, 'a')
}

/** The same numbers each time, so that a pattern is measured with the same texts everywhere. */
function createRandom(): () => number {
  let state = 1
  return () => {
    state = (Math.imul(state, 48_271) >>> 0) % 0x7fffffff
    return state / 0x7fffffff
  }
}
