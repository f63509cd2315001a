import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { ROOT } from '../deploy/files.ts'
import { openBrowser } from '../support/browser.ts'
import { Child } from '../support/child.ts'
import { commandsOf, isAsShown } from './blocks.ts'
import { isLaunch } from './launch.ts'
import type { Shell } from './shell.ts'
import { Stage } from './stage.ts'

const FOLDER = 'shared/client/examples'
const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8')
const readme = await read(`${FOLDER}/README.md`)
const START = /^((?:[A-Z_]+=\S+ )*)shared\/client\/examples\/start (\w+)/

const CODE: Readonly<Record<string, readonly string[]>> = {
  chat: ['index.html', 'main.tsx', 'vite.config.ts'],
  hono: ['server.ts'],
  fastapi: ['app.py'],
  github: ['server.ts'],
}

const variablesOf = (text: string): Record<string, string> =>
  Object.fromEntries(text.split(/\s+/).flatMap((each) => (each.includes('=') ? [each.split('=', 2)] : [])))

describe('shared/client/examples/README.md', () => {
  let stage: Stage
  let shell: Shell
  let browser: Browser | undefined
  const examples = new Map<string, Child>()
  /** The addresses of the document, and those that stand for them here. */
  const addresses: [string, string][] = []
  before(async () => {
    const launch = commandsOf(readme).flatMap(({ text }) => text.split('\n').filter(isLaunch))
    stage = await Stage.open({ ...variablesOf(launch.join(' ')), RATE_LIMIT_RPM: '0' })
    await installExamples(stage)
    shell = await stage.shell()
  })
  after(async () => {
    await browser?.close()
    for (const example of examples.values()) await example.end()
    await shell?.close()
    await stage?.close()
  })

  const here = (text: string): string =>
    addresses.reduce((changed, [from, to]) => changed.replaceAll(from, to), stage.localized(text))

  /** Starts an example on a free port. The next address in the document that nothing has stands for it. */
  async function start(command: string, port: string): Promise<void> {
    const [, variables = '', name = ''] = START.exec(command) ?? []
    const env = { AE_URL: stage.localized('http://127.0.0.1:8080/v1'), PORT: '0', HOME: stage.dir }
    const example = new Child(join(stage.dir, FOLDER, 'start'), [name], { ...env, ...variablesOf(variables) })
    examples.set(name, example)
    const line = await example.line(/http:\/\/127\.0\.0\.1:\d+/)
    addresses.push([`http://127.0.0.1:${port}`, /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? ''])
  }

  for (const { line, text, output } of commandsOf(readme))
    it(`the commands in line ${line} work, and print what is shown`, async () => {
      const commands = text.split('\n').filter((each) => !isLaunch(each))
      for (const command of commands.filter((each) => START.test(each))) {
        const rest = readme.slice(readme.indexOf(command))
        await start(command, /http:\/\/127\.0\.0\.1:(\d+)/.exec(rest)?.[1] ?? '')
      }
      const printed = await shell.run(here(commands.filter((each) => !START.test(each)).join('\n')))
      if (output !== undefined) expect(isAsShown(output, printed), `printed:\n${printed}`).to.equal(true)
    })

  it('the page asks before the tool runs, shows the chat again after it was loaded anew, and goes on once it is allowed', async () => {
    const [, prompt = ''] = /send `(\/tool Write [^`]+)`/.exec(readme) ?? []
    browser = await openBrowser()
    const page = await browser.newPage()
    page.setDefaultTimeout(20_000)
    await page.goto(here('http://127.0.0.1:5173/'))
    await page.getByLabel('Message').fill(prompt)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('button', { name: 'Allow' }).waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByText('output-available').waitFor()
    await page.reload()
    await page.getByText('output-available').waitFor()
    expect(await page.getByText(prompt, { exact: true }).count()).to.equal(1)
  })

  it("a plan's end comes back as a webhook", async () => {
    const [, shown = ''] = /which the example prints:\n\n```\n([^]*?)```/.exec(readme) ?? []
    const line = (await examples.get('github')?.line(/^received/)) ?? ''
    expect(isAsShown(shown, line), line).to.equal(true)
  })

  it('what an example does not take is refused, and none of it stops an example', async () => {
    const post = async (address: string, body: string, headers = {}) => {
      const init = { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }
      return (await fetch(here(address), init)).status
    }
    for (const body of ['{', '{}', '{"prompt": 5}'])
      expect(await post('http://127.0.0.1:3000/chats/a', body)).to.equal(400)
    for (const body of ['{', '{}', '{"text": ""}'])
      expect(await post('http://127.0.0.1:8000/invoices', body)).to.equal(422)
    const signature = { 'x-hub-signature-256': `sha256=${'é'.repeat(64)}` }
    for (const headers of [{}, signature])
      expect(await post('http://127.0.0.1:3001/github', '{}', headers)).to.equal(401)
    expect(await post('http://127.0.0.1:3001/engine', '{}')).to.equal(401)
    const denied = await fetch(here('http://127.0.0.1:3000/chats/b'), {
      method: 'POST',
      body: JSON.stringify({ prompt: '/tool Write {"path": "a.txt", "content": "x"}' }),
    })
    const events = await denied.text()
    const texts = [...events.matchAll(/^data: (\{"text".*)$/gm)].map(
      ([, data = '']) => JSON.parse(data) as { text: string },
    )
    expect(texts.map(({ text }) => text).join('')).to.include('This application only reads.')
    expect(events).to.include('event: done')
  })

  it('each example has fewer than 80 lines of code', async () => {
    for (const [name, files] of Object.entries(CODE)) {
      const texts = await Promise.all(files.map((file) => read(`${FOLDER}/${name}/${file}`)))
      const lines = texts
        .join('\n')
        .split('\n')
        .filter((line) => !/^\s*($|\/\/|\/\*|\*|#|""")/.test(line))
      expect(lines.length, name).to.be.below(80)
    }
  })

  it('the packages of the examples are those that the tests run', async () => {
    const { dependencies } = JSON.parse(await read(`${FOLDER}/package.json`)) as {
      dependencies: Record<string, string>
    }
    const ours = JSON.parse(await read('package.json')) as Record<string, Record<string, string>>
    const { '@agent-engine/client': client, ...others } = dependencies
    expect(others).to.deep.equal(
      Object.fromEntries(
        Object.keys(others).map((name) => [
          name,
          ours['devDependencies']?.[name] ?? ours['optionalDependencies']?.[name],
        ]),
      ),
    )
    expect(client).to.equal(`file:agent-engine-client-${ours['version']}.tgz`)
    const pinned = (await read('scripts/local-services/openapi-python-client.txt')).split('\n')
    expect(pinned).to.include.members((await read(`${FOLDER}/fastapi/requirements.txt`)).trim().split('\n'))
  })
})

/** What `start` installs: the client and its packages are those of the project. */
async function installExamples({ dir }: Stage): Promise<void> {
  const to = join(dir, FOLDER)
  await cp(join(ROOT, FOLDER), to, { recursive: true, filter: (path) => !/node_modules|\.venv|\.tgz$/.test(path) })
  await mkdir(join(dir, 'client'))
  await writeFile(join(dir, 'client/package.json'), '{"type": "module", "exports": "./client.ts"}')
  await writeFile(join(dir, 'client/client.ts'), `export * from '${ROOT}shared/client/client.ts'`)
  await mkdir(join(to, 'node_modules/@agent-engine'), { recursive: true })
  await symlink(join(dir, 'client'), join(to, 'node_modules/@agent-engine/client'))
  const path = `${await requirePythonClient()}:${ROOT}shared/client-python`
  await mkdir(join(to, '.venv/bin'), { recursive: true })
  await writeFile(join(to, '.venv/installed'), '')
  await writeFile(join(to, '.venv/bin/python'), `#!/bin/sh\nPYTHONPATH=${path} exec python3 "$@"\n`, { mode: 0o700 })
}
