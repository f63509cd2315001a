import { execFile } from 'node:child_process'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { ROOT } from '../deploy/files.ts'
import { Child } from '../support/child.ts'
import { useOpened } from '../support/fixture.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { isAsShown } from './blocks.ts'
import { Stage } from './stage.ts'

const run = promisify(execFile)
const FOLDER = join(ROOT, 'shared/client')
const readme = await readFile(join(FOLDER, 'README.md'), 'utf8')
const guide = await readFile(join(ROOT, 'shared/platform/api/guide.md'), 'utf8')

/** The programs of the README: its blocks in order, up to the last section, which has one of its own. */
const [subjects = '', integration = ''] = readme.split('## A whole integration')

/** The guide's program, and what it prints. */
const [, twin = ''] = guide.split('### With TypeScript')
const [twinProgram = ''] = twin.split('\n### ')

const textOf = (markdown: string, language: string): string =>
  [...markdown.matchAll(/^```(\w*)\n([^]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text)
    .join('\n')

describe('shared/client/README.md', function () {
  this.timeout(90_000)
  const dir = useTempFolder()
  // The programs have more requests than a minute's.
  const stage = useOpened(() => Stage.open({ RATE_LIMIT_RPM: '0', ALLOW_PRIVATE_URLS: 'true' }))
  before(async () => {
    await writeFile(join(dir.path, 'package.json'), '{"type":"module"}')
  })

  /** Resolves with what the command prints. Rejects with its output when it fails. */
  async function call(command: string, args: string[], cwd = dir.path): Promise<string> {
    const env = { PATH: process.env['PATH'], HOME: dir.path }
    const { stdout } = await run(command, args, { cwd, env }).catch((cause: { stdout: string; stderr: string }) => {
      throw new Error(`${command} ${args.join(' ')} failed:\n${cause.stdout}${cause.stderr}`)
    })
    return stdout
  }

  it('packs the client of this version, which installs without anything else', async () => {
    const [pack, install = '', ...others] = textOf(readme, 'sh').trim().split('\n')
    expect([pack, others]).to.deep.equal(['npm run client:pack', []])
    const { version } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as { version: string }
    const archive = /^npm install \.\/(agent-engine-client-(\S+)\.tgz)$/.exec(install)
    expect(archive?.[2]).to.equal(version)
    await call('npm', ['run', 'client:pack', '--', '--pack-destination', dir.path], ROOT)
    await call('npm', ['install', '--offline', join(dir.path, archive?.[1] ?? '')])
    const lock = JSON.parse(await readFile(join(dir.path, 'package-lock.json'), 'utf8')) as { packages: object }
    expect(Object.keys(lock.packages)).to.deep.equal(['', 'node_modules/@agent-engine/client'])
  })

  it('has programs that compile against the installed types, also where only those of browsers are known', async () => {
    await symlink(`${ROOT}node_modules/tus-js-client`, join(dir.path, 'node_modules/tus-js-client'))
    await writeFile(join(dir.path, 'subjects.ts'), stage.localized(textOf(subjects, 'ts')))
    await writeFile(join(dir.path, 'integration.ts'), stage.localized(textOf(integration, 'ts')))
    await writeFile(join(dir.path, 'guide.ts'), stage.localized(textOf(twinProgram, 'ts')))
    const wrong = `import { AgentEngine } from '@agent-engine/client'
      const { raw } = new AgentEngine({ url: '' })
      // @ts-expect-error There is no such path.
      void raw.get('/no/such/path')
      // @ts-expect-error The name is missing.
      void raw.get('/flows/{name}')
      void raw.get('/tools').then(({ tools }) => tools[0]?.input_schema)`
    await writeFile(join(dir.path, 'wrong.ts'), wrong)
    const compiler = [`${ROOT}node_modules/typescript/bin/tsc`, '--noEmit', '--strict', '--target', 'es2022']
    const node = ['--module', 'nodenext', '--types', 'node', '--typeRoots', `${ROOT}node_modules/@types`]
    await call(process.execPath, [...compiler, ...node, 'subjects.ts', 'integration.ts', 'guide.ts', 'wrong.ts'])
    const browser = ['--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2022,dom,dom.iterable']
    await call(process.execPath, [...compiler, ...browser, '--types', '', 'wrong.ts'])
  })

  it('has a receiver of webhooks that takes what the server has signed', async () => {
    await symlink(`${ROOT}node_modules/standardwebhooks`, join(dir.path, 'node_modules/standardwebhooks'))
    await writeFile(join(dir.path, 'receiver.js'), stage.localized(textOf(subjects, 'js')))
    const receiver = new Child(process.execPath, [join(dir.path, 'receiver.js')], {})
    const line = await receiver.line(/webhook/)
    await receiver.end()
    expect(line).to.equal("webhook.test { webhook: 'mine' }")
  })

  for (const [file, part] of [
    ['subjects.ts', subjects],
    ['integration.ts', integration],
    ['guide.ts', twinProgram],
  ] as const)
    it(`has a program that prints what is shown: ${file}`, async () => {
      const printed = await call(process.execPath, [file])
      expect(isAsShown(textOf(part, ''), printed), `printed:\n${printed}`).to.equal(true)
    })
})
