/**
 * Returns the indexes of the first `max` occurrences of `needle` in `text` that do not overlap. Takes time linear in both
 * lengths (Knuth-Morris-Pratt). V8's `indexOf` is quadratic for texts such as `aaaa…`, and the model chooses both texts.
 */
export function occurrences(text: string, needle: string, max: number): number[] {
  const borders = bordersOf(needle)
  const starts: number[] = []
  let matched = 0
  for (let at = 0; at < text.length && starts.length < max; at += 1) {
    const unit = text.charCodeAt(at)
    while (matched > 0 && unit !== needle.charCodeAt(matched)) matched = borders[matched - 1] ?? 0
    if (unit === needle.charCodeAt(matched)) matched += 1
    if (matched < needle.length) continue
    starts.push(at + 1 - needle.length)
    matched = 0
  }
  return starts
}

/** For each prefix of `needle`, the length of its longest proper prefix that is also its suffix. */
function bordersOf(needle: string): Uint32Array {
  const borders = new Uint32Array(needle.length)
  let length = 0
  for (let at = 1; at < needle.length; at += 1) {
    while (length > 0 && needle.charCodeAt(at) !== needle.charCodeAt(length)) length = borders[length - 1] ?? 0
    if (needle.charCodeAt(at) === needle.charCodeAt(length)) length += 1
    borders[at] = length
  }
  return borders
}
