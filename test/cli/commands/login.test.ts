import { chmod, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { startStandalone } from '../../support/product.ts'

const TOKEN = 'token-0123456789abcdef'

describe('ae login, logout, whoami and profile', () => {
  const at = useAe(() => startStandalone({ API_TOKEN: TOKEN }))
  const env = () => ({ AE_URL: '' })
  const fileOf = () => join(at.home, '.config/agent-engine/profiles.json')

  it('without a token the server is used by nobody: 77, and the line that helps', async () => {
    const { code, err } = await at.ae.run(['whoami'])
    expect(code).to.equal(77)
    expect(err).to.include('ae login')
  })

  it('a token is tried before it is stored, and a wrong one is not stored', async () => {
    expect((await at.ae.run(['login'], { input: 'wrong\n' })).code).to.equal(3)
    expect((await at.ae.run(['login'], { input: 'two words' })).code).to.equal(2)
    await stat(fileOf()).then(
      () => expect.fail('there is a file'),
      () => undefined,
    )
  })

  it('stores a token from stdin for its owner only, never shows it, and uses it', async () => {
    const { code, out, err } = await at.ae.run(['login', '--name', 'work'], { input: `${TOKEN}\n` })
    expect(code, err).to.equal(0)
    expect((await stat(fileOf())).mode & 0o777).to.equal(0o600)
    expect((await stat(join(at.home, '.config/agent-engine'))).mode & 0o777).to.equal(0o700)
    const who = await at.ae.run(['whoami'], { env: env() })
    expect(who.out)
      .to.match(/^subject +\S+\ntenant +\S+\n/)
      .and.match(/^profile +work$/m)
    const listed = await at.ae.run(['profile', '-o', 'json'])
    for (const text of [out, err, who.out, who.err, listed.out]) expect(text).to.not.include(TOKEN)
    expect(JSON.parse(listed.out)).to.deep.equal([
      { name: 'work', url: at.server.url, is_current: true, has_token: true },
    ])
  })

  it('AE_URL and AE_TOKEN win, and the token of a profile goes to no other server', async () => {
    expect((await at.ae.run(['whoami'], { env: { ...env(), AE_TOKEN: 'wrong' } })).code).to.equal(3)
    expect(
      (await at.ae.run(['whoami'], { env: { AE_URL: at.server.url.replace('127.0.0.1', 'localhost') } })).code,
    ).to.equal(77)
  })

  it('a terminal asks for the token and does not show it', async () => {
    const terminal = at.ae.terminal(['login', '--name', 'typed'])
    await terminal.shows(/^token:/)
    terminal.type(`${TOKEN}\r`)
    expect(await terminal.exited).to.equal(0)
    expect(terminal.written).to.include('signed in at').and.not.include(TOKEN)
  })

  it('logout forgets the token, and a profile can be added, used and removed', async () => {
    expect((await at.ae.run(['logout'], { env: env() })).code).to.equal(0)
    expect((await at.ae.run(['whoami'], { env: env() })).code).to.equal(77)
    expect((await at.ae.run(['profile', 'add', 'other', 'http://127.0.0.1:9/v1'])).code).to.equal(0)
    expect((await at.ae.run(['whoami'], { env: env() })).code).to.equal(69)
    expect((await at.ae.run(['profile', 'use', 'work'])).code).to.equal(0)
    expect((await at.ae.run(['whoami'], { env: env() })).code).to.equal(0)
    expect((await at.ae.run(['profile', 'rm', 'other'])).code).to.equal(0)
    expect((await at.ae.run(['profile', 'rm', 'other'])).code).to.equal(4)
    expect((await at.ae.run(['profile', '-o', 'ids'])).out).to.equal('work\ntyped\n')
  })

  it('a file of profiles that others may read is refused: 78', async () => {
    await chmod(fileOf(), 0o644)
    const { code, err } = await at.ae.run(['whoami'])
    expect(code).to.equal(78)
    expect(err).to.include(`chmod 600 ${fileOf()}`)
    await chmod(fileOf(), 0o600)
    expect(await readFile(fileOf(), 'utf8')).to.include(TOKEN)
  })
})
