import { findNodeAtLocation, type Node, parseTree, printParseErrorCode, visit } from 'jsonc-parser'

/** A part of a text: from its first character to the index after its last. */
export type Span = { from: number; to: number }

const STRICT = { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false }
const WORDS = ['true', 'false', 'null', '-']

/**
 * Where a text stops being JSON: the index of the first invalid word, string, number or sign, or the length of a text that ends too
 * early. `undefined` for valid JSON.
 */
export function syntaxErrorAt(text: string): number | undefined {
  let at: number | undefined
  const onError = (code: number, offset: number, length: number) => {
    at ??=
      offset + length === text.length && mayGoOn(printParseErrorCode(code), text.slice(offset)) ? text.length : offset
  }
  return readDeep(() => visit(text, { onError }, STRICT)) ? at : (at ?? 0)
}

/** Returns false for a text that is nested too deeply to be read. */
function readDeep(read: () => void): boolean {
  try {
    read()
    return true
  } catch (cause) {
    if (cause instanceof RangeError) return false // The stack is full.
    throw cause
  }
}

/** Whether the last word, number or string of a text may be the beginning of a valid one. */
function mayGoOn(problem: string, last: string): boolean {
  if (problem === 'InvalidSymbol') return WORDS.some((word) => word.startsWith(last))
  return problem === 'UnexpectedEndOfNumber' || problem === 'UnexpectedEndOfString'
}

/**
 * The place of the value that a JSON pointer names, or of the nearest existing parent. Values before a syntax error have places, too.
 */
export function placesIn(text: string): (pointer: string) => Span | undefined {
  let root: Node | undefined
  readDeep(() => (root = parseTree(text, [], STRICT)))
  return (pointer) => {
    const names = pointer.split('/').slice(1).map(unescaped)
    let node = root
    for (const name of names) {
      const next = node && findNodeAtLocation(node, [node.type === 'array' ? Number(name) : name])
      if (!next) break
      node = next
    }
    return node && spanOf(node)
  }
}

const unescaped = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~')

const spanOf = ({ offset, length }: Node): Span => ({ from: offset, to: offset + length })
