// Tests init.ts and trial-server.ts.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { startModelServer } from '../../support/model-server/model-server.ts'

const KEY = 'sk-init-0123456789abcdef'

describe('ae init', () => {
  const at = useAe(startModelServer)
  const fileOf = (name: string) => join(at.home, name)
  const init = (...args: string[]) =>
    at.ae.run(['init', '--provider', 'openai-compatible', '--base-url', at.server.url, ...args], {
      cwd: at.home,
      input: `${KEY}\n`,
    })

  it('tries the model with the key before it writes, and prints three next commands', async () => {
    const { code, out, err } = await init('-m', 'test-model', '--key-file', '-')
    expect(code, err).to.equal(0)
    expect(out).to.equal('ae serve --env-file .env\nae run "What can you do?"\nae chat\n')
    expect(err).to.match(/✓ test-model answers in \d+ ms: streaming/)
    expect(out + err).to.not.include(KEY)
    expect(at.server.requests.every(({ headers }) => headers['authorization'] === `Bearer ${KEY}`)).to.equal(true)
    const [, ...lines] = (await readFile(fileOf('.env'), 'utf8')).trim().split('\n')
    const values = [
      'MODEL_PROVIDER=openai-compatible',
      'MODEL=test-model',
      `MODEL_BASE_URL=${at.server.url}`,
      `MODEL_API_KEY=${KEY}`,
    ]
    expect(lines).to.deep.equal(values)
    expect((await stat(fileOf('.env'))).mode & 0o777).to.equal(0o600)
  })

  it('leaves a file that is there, unless that is agreed to, and needs no terminal for what is given', async () => {
    const before = await readFile(fileOf('.env'), 'utf8')
    const { code, err } = await init('-m', 'other', '--no-try')
    expect([code, err]).to.deep.equal([
      2,
      '✗ .env is there already\n  Give --force to replace it, or another --file.\n',
    ])
    expect(await readFile(fileOf('.env'), 'utf8')).to.equal(before)
    expect((await init('-m', 'other', '--no-try', '--force')).code).to.equal(0)
    expect(await readFile(fileOf('.env'), 'utf8'))
      .to.include('MODEL=other\n')
      .and.not.include('API_KEY')
    expect((await init('--no-try', '--file', 'b.env')).err).to.match(
      /✗ there is no terminal to ask at\n {2}Give --provider/,
    )
  })

  it('writes nothing when the provider refuses, and says why and what to do', async () => {
    at.server.models = { status: 401, message: 'no such key' }
    const terminal = at.ae.terminal(['init', '--provider', 'openai-compatible', '--file', fileOf('none.env')])
    await terminal.shows(/its address, such as [^\n]*: *$/)
    terminal.type(`${at.server.url}\r`)
    await terminal.shows(/key \(not shown, may be empty\): *$/)
    terminal.type(`${KEY}\r`)
    expect(await terminal.exited).to.equal(1)
    expect(terminal.screen.text).to.match(/✗ [^]+\n {2}Nothing was written\. Run `ae init` again/)
    expect(terminal.written).to.not.include(KEY)
    await stat(fileOf('none.env')).then(
      () => expect.fail('there is a file'),
      () => undefined,
    )
  })
})
