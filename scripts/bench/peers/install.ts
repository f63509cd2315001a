import { execFile } from 'node:child_process'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The packages of the peers, in the versions that are compared. */
const PACKAGES = ['ai@7.0.173', '@ai-sdk/openai-compatible@3.0.92', '@openai/agents@0.20.0', 'openai@7.57.0', 'zod@4']

/** The same in each program: a server of node:http that answers a prompt with one event for each text. */
const SERVER = `import { createServer } from 'node:http'
const serve = (textsOf) => createServer((req, res) => {
  if (req.method === 'GET') return res.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
  let body = ''
  req.setEncoding('utf8').on('data', (chunk) => (body += chunk)).on('end', () => answer(JSON.parse(body).prompt, res, textsOf))
}).listen(Number(process.env.PORT), '127.0.0.1')
async function answer(prompt, res, textsOf) {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for await (const text of await textsOf(prompt))
    if (!res.write('event: text_delta\\ndata: ' + JSON.stringify({ text }) + '\\n\\n')) await new Promise((then) => res.once('drain', then))
  res.end('event: done\\ndata: {}\\n\\n')
}
`

const PROGRAMS = {
  'ai-sdk': `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { streamText } from 'ai'
${SERVER}
const model = createOpenAICompatible({ name: 'bench', baseURL: process.env.MODEL_BASE_URL })('bench')
serve((prompt) => streamText({ model, prompt }).textStream)
`,
  'agents-sdk': `import { Agent, OpenAIChatCompletionsModel, Runner } from '@openai/agents'
import OpenAI from 'openai'
${SERVER}
const client = new OpenAI({ apiKey: 'none', baseURL: process.env.MODEL_BASE_URL })
const agent = new Agent({ name: 'bench', instructions: 'Be short.', model: new OpenAIChatCompletionsModel(client, 'bench') })
const runner = new Runner({ tracingDisabled: true })
serve(async (prompt) => (await runner.run(agent, prompt, { stream: true })).toTextStream())
`,
}

export type Peer = keyof typeof PROGRAMS

/** Installs the packages into a folder, unless they are there, and writes the programs beside them. Returns the paths of the programs. */
export async function installPeers(folder: string): Promise<Record<Peer, string>> {
  await mkdir(folder, { recursive: true })
  const isThere = access(join(folder, 'node_modules/@openai/agents')).then(
    () => true,
    () => false,
  )
  if (!(await isThere))
    await promisify(execFile)('npm', [
      'install',
      '--no-audit',
      '--no-fund',
      '--silent',
      '--prefix',
      folder,
      ...PACKAGES,
    ])
  const paths = Object.entries(PROGRAMS).map(async ([name, text]) => {
    const path = join(folder, `${name}.mjs`)
    await writeFile(path, text)
    return [name, path]
  })
  return Object.fromEntries(await Promise.all(paths)) as Record<Peer, string>
}
