import { execFile } from 'node:child_process'
import { access, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import type { Answer, Received } from '../../test/support/model-server/model-server.ts'
import { type StartProduct, startMembers, startStandalone } from '../../test/support/product.ts'

const USAGE = `usage: npm run try:tools -- [--form standalone|cluster] [--folder PATH]

Starts the product, in both forms one after the other, and lets agents of LangChain (create_agent with @tool, with_structured_output), of pydantic-ai (tools, and output_type) and of
OpenAI's Agents SDK (function_tool), unmodified, use their own tools through chat completions and responses. It needs Python 3.11
or newer with venv; the first time it fetches the packages of requirements.txt, which takes a minute. The cluster needs Redis.
`

const FORMS: Readonly<Record<string, StartProduct>> = { standalone: startStandalone, cluster: startMembers }
const PROGRAM = fileURLToPath(new URL('own_tools.py', import.meta.url))
const REQUIREMENTS = fileURLToPath(new URL('requirements.txt', import.meta.url))
const SENT = 'A-7 was sent on Monday'
const RIGHT = 'has its answer'
const MINUTES_MS = 10 * 60_000
const run = promisify(execFile)

type Line = { name: string; answer?: string; error?: string }

const { values } = parseArgs({
  options: { form: { type: 'string' }, folder: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
})
if (values.help) process.stdout.write(USAGE)
else process.exitCode = await main(values.folder ?? join(tmpdir(), 'agent-engine-tools'), values.form)

async function main(folder: string, only: string | undefined): Promise<number> {
  const python = await ensurePackages(folder)
  const forms = Object.keys(FORMS).filter((form) => only === undefined || only === form)
  const cells = new Map<string, string[]>()
  for (const form of forms) {
    for (const { name, answer, error } of await tryIn(FORMS[form] ?? startStandalone, python))
      cells.set(name, [
        ...(cells.get(name) ?? []),
        answer?.includes(SENT) === true ? RIGHT : `FAILED: ${error ?? answer}`,
      ])
  }
  console.log(`\nPackages: ${(await readFile(REQUIREMENTS, 'utf8')).trim().replaceAll('\n', ', ')}\n`)
  for (const row of [
    ['client', ...forms],
    ['', ...forms].map(() => '---'),
    ...[...cells].map(([name, seen]) => [name, ...seen]),
  ])
    console.log(`| ${row.join(' | ')} |`)
  return [...cells.values()].flat().every((seen) => seen === RIGHT) ? 0 : 1
}

async function ensurePackages(folder: string): Promise<string> {
  const python = join(folder, 'bin/python')
  const isThere = await access(join(folder, 'complete')).then(
    () => true,
    () => false,
  )
  if (isThere) return python
  console.log(`Fetching the packages into ${folder} ...`)
  await run('python3', ['-m', 'venv', folder])
  await run(python, ['-m', 'pip', 'install', '--quiet', '-r', REQUIREMENTS], { timeout: MINUTES_MS })
  await run('touch', [join(folder, 'complete')])
  return python
}

async function tryIn(start: StartProduct, python: string): Promise<Line[]> {
  const product = await start({ DIALECTS: 'openai' })
  product.model.otherwise(answerOf)
  try {
    const { stdout } = await run(python, [PROGRAM, `${product.url}/openai/v1`], { timeout: MINUTES_MS })
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  } finally {
    await product.close()
  }
}

/** Looks the order up, and answers with what it has read: as text, or by the tool that pydantic-ai offers for an output. What is to be a value is one at once. */
function answerOf({ body }: Received): Answer {
  const messages = body['messages'] as { role: string; content: unknown }[]
  const tools = (body['tools'] ?? []) as { function: { name: string } }[]
  const order = { id: 'A-7', state: SENT }
  if (body['response_format']) return JSON.stringify(order)
  if (tools.some(({ function: { name } }) => name === 'Order')) return [{ tool: 'Order', input: order, id: 'call_1' }]
  const last = messages.at(-1)
  if (last?.role !== 'tool') return [{ tool: 'get_order', input: { id: 'A-7' }, id: `call_${messages.length}` }]
  if (!tools.some(({ function: { name } }) => name === 'final_result')) return `It says: ${String(last.content)}`
  return [{ tool: 'final_result', input: { id: 'A-7', state: String(last.content) }, id: `call_${messages.length}` }]
}
