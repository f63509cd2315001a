/** A fenced block of a Markdown document. `output` is the block without a language right behind it: what the commands print. */
export type Commands = { line: number; text: string; output: string | undefined }

/** The blocks of shell commands of a document, in their order. */
export function commandsOf(markdown: string): Commands[] {
  const blocks = [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(
    ({ index, 0: whole, 1: language, 2: text }) => ({
      language,
      text: text ?? '',
      line: markdown.slice(0, index).split('\n').length,
      from: index,
      to: index + whole.length,
    }),
  )
  return blocks.flatMap(({ language, text, line, to }, i) => {
    if (language !== 'sh') return []
    const next = blocks[i + 1]
    const isOutput = next?.language === '' && markdown.slice(to, next.from).trim() === ''
    return [{ line, text, output: isOutput ? next.text : undefined }]
  })
}

/** Whether a command printed what the document shows. `…`, and a remark in brackets with dots at both ends, stand for any text. */
export function isAsShown(shown: string, printed: string): boolean {
  const parts = shown.trim().split(/\s*(?:\[… .*? …\]|…)\s*/)
  const pattern = parts.map((part) => escape(squeeze(part))).join('[\\s\\S]*')
  return new RegExp(`^${pattern}$`).test(squeeze(printed.trim()))
}

const squeeze = (text: string) => text.replaceAll(/\s+/g, ' ')

const escape = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
