/** Cuts `text` to `max` UTF-16 units, never through a surrogate pair, and marks the cut with an ellipsis. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text
  const end = /[\uD800-\uDBFF]/.test(text.charAt(max - 1)) ? max - 1 : max
  return `${text.slice(0, end)}…`
}
