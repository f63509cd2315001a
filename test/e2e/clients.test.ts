import { execFile } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { ROOT } from '../deploy/files.ts'
import { type Product, startStandalone } from '../support/product.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { PYTHON_PROGRAM, TYPESCRIPT_PROGRAM } from './client-programs.ts'

const run = promisify(execFile)
const API_TOKEN = 'token-of-the-generated-clients'

describe('clients that are generated from the served API description', () => {
  let product: Product
  const dir = useTempFolder()
  before(async () => {
    product = await startStandalone({ API_TOKEN })
    product.model.otherwise(() => 'Hello back')
    const served = await fetch(`${product.url}/openapi.json`)
    await writeFile(join(dir.path, 'openapi.json'), await served.text())
  })
  after(() => product.close())

  /** Resolves with what the command prints. Rejects with its output when it fails. */
  async function call(command: string, args: string[], env: Record<string, string> = {}): Promise<string> {
    const { stdout } = await run(command, args, { cwd: dir.path, env: { PATH: process.env['PATH'], ...env } }).catch(
      (cause: { stdout: string; stderr: string }) => {
        throw new Error(`${command} ${args.join(' ')} failed:\n${cause.stdout}${cause.stderr}`)
      },
    )
    return stdout
  }

  it("openapi-typescript's types compile without any option, and fit the answers", async () => {
    await symlink(`${ROOT}node_modules`, join(dir.path, 'node_modules'))
    await writeFile(join(dir.path, 'package.json'), '{"type":"module"}')
    await writeFile(join(dir.path, 'program.ts'), TYPESCRIPT_PROGRAM)
    const generator = [`${ROOT}node_modules/openapi-typescript/bin/cli.js`, 'openapi.json', '-o', 'api.ts']
    await call(process.execPath, ['--import', `${ROOT}scripts/typescript-6.ts`, ...generator])
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
    const compiler = [`${ROOT}node_modules/typescript/bin/tsc`, ...options, '--allowImportingTsExtensions']
    await call(process.execPath, [...compiler, 'program.ts'])
    const printed = await call(process.execPath, ['program.ts', product.url, API_TOKEN])
    expect(JSON.parse(printed)).to.deep.equal({ step: 'one', version: 1, texts: ['Hello back'] })
  })

  it("openapi-python-client's package is generated without a warning, and every module of it can be imported", async () => {
    const env = { PYTHONPATH: `${await requirePythonClient()}:.` }
    await writeFile(
      join(dir.path, 'options.yaml'),
      `post_hooks: []\ncontent_type_overrides:\n  application/offset+octet-stream: application/octet-stream\n  application/jsonl: application/octet-stream\n`,
    ) // Hooks would only format the code.
    await writeFile(join(dir.path, 'program.py'), PYTHON_PROGRAM)
    const options = ['--meta', 'none', '--config', 'options.yaml', '--fail-on-warning']
    const generator = ['-m', 'openapi_python_client', 'generate', '--path', 'openapi.json', '--output-path', 'client']
    await call('python3', [...generator, ...options], env)
    const printed = await call('python3', ['program.py', product.url, API_TOKEN], env)
    expect(JSON.parse(printed)).to.deep.equal({ step: 'one', parallel: true, output: 'Hello back' })
  })
})
