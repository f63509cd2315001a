import { hash } from 'node:crypto'
import type { Request, Response } from 'express'

/** A table as an operator's browser shows it. Cells are texts. */
export type TablePage = {
  title: string
  /** The HTML below the title. */
  summary: string
  columns: readonly string[]
  rows: readonly (readonly string[])[]
  /** The path of the next page. */
  next?: string | null
}

const STYLE = `:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem }
nav a { margin-right: 1rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse }
th, td { border-bottom: 1px solid GrayText; padding: 0.3rem 1rem 0.3rem 0; text-align: left; vertical-align: top }`

/** Nothing is loaded, sent or run. */
const POLICY = `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const PAGES = ['members', 'tenants', 'queues'] as const

/** Answers with JSON, or with a page without scripts for a client that prefers HTML. */
export function answerTable(req: Request, res: Response, { json, page }: { json: object; page: TablePage }): void {
  res.vary('Accept')
  if (req.accepts(['json', 'html']) !== 'html') return void res.json(json)
  res.setHeader('Content-Security-Policy', POLICY)
  res.setHeader('Referrer-Policy', 'no-referrer')
  res.type('html').send(render(page))
}

/** The first cell of each row is its heading. */
function render({ title, summary, columns, rows, next }: TablePage): string {
  const links = PAGES.map((name) => `<a href="/${name}"${current(name, title)}>${titleOf(name)}</a>`)
  const head = columns.map((name) => `<th scope="col">${escape(name)}</th>`)
  const body = rows.map(([first = '', ...rest]) => {
    const cells = rest.map((text) => `<td>${escape(text)}</td>`)
    return `<tr><th scope="row">${escape(first)}</th>${cells.join('')}</tr>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} – agent-engine</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Pages">${links.join('')}</nav>
<main>
<h1>${escape(title)}</h1>
<p>${escape(summary)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="${escape(title)}">
<table>
<thead><tr>${head.join('')}</tr></thead>
<tbody>
${body.join('\n')}
</tbody>
</table>
</div>
${next ? `<p><a href="${escape(next)}" rel="next">Next page</a></p>\n` : ''}</main>
</body>
</html>
`
}

const titleOf = (name: string) => name.charAt(0).toUpperCase() + name.slice(1)

const current = (name: string, title: string) => (titleOf(name) === title ? ' aria-current="page"' : '')

const escape = (text: string) => text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
