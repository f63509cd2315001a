import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { openStandaloneStore } from '../../services/wiring/open-store.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { createKeyring, type Keyring } from '../../shared/tenancy/secrets/keyring.ts'
import { seal, unseal } from '../../shared/tenancy/secrets/seal.ts'
import { putSecret } from '../../shared/tenancy/tenant-config/changes.ts'
import { EMPTY_CONFIG, type TenantConfig } from '../../shared/tenancy/tenant-config/config.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { tenantId } from '../support/tenant.ts'

const SCRIPT = fileURLToPath(new URL('../../scripts/rewrap-keys', import.meta.url))
const KEY = 'sk-canary-0123456789'
const ACME = tenantId('acme')
const [old, fresh] = [randomBytes(32), randomBytes(32)]
const base64 = (key: Buffer) => key.toString('base64')

type Ended = { code: number; stdout: string; stderr: string }

function run(env: Record<string, string>, args: readonly string[] = []): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env['PATH'], ...env } }
    execFile(SCRIPT, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

describe('scripts/rewrap-keys', () => {
  const dir = useTempFolder({ perTest: true })
  const rotation = () => ({ DATA_DIR: dir.path, MASTER_KEY: base64(fresh), MASTER_KEY_PREVIOUS: base64(old) })

  const openConfigs = async () => {
    return openStandaloneStore(loadConfig({ DATA_DIR: dir.path }, 'standalone'))
  }

  const storeSecret = async (ring: Keyring, name = 'team') => {
    const store = await openConfigs()
    const sealed = seal(KEY, { tenant: ACME, kind: 'secret', name }, ring)
    const change = putSecret({ name, key: 'sk-c…', sealed, updated_at: '2026-11-22T09:00:00.000Z' })
    await store.tenantConfigs.update(ACME, (doc) => ({ ...change((doc ?? EMPTY_CONFIG) as unknown as TenantConfig) }))
    await store.close()
  }

  const readSecret = async (ring: Keyring) => {
    const store = await openConfigs()
    const config = (await store.tenantConfigs.read(ACME)) as unknown as TenantConfig
    await store.close()
    const [secret] = config.secrets
    return secret && unseal(secret.sealed, { tenant: ACME, kind: 'secret', name: secret.name }, ring)
  }

  it('wraps the records in the database of DATA_DIR, prints counts and no key, and finds nothing to do the second time', async () => {
    await storeSecret(createKeyring(old))
    const first = await run(rotation())
    expect(first).to.include({ code: 0, stderr: '' })
    expect(first.stdout).to.include('tenant acme: 1 wrapped, 0 already').and.include('1 tenants: 1 records wrapped')
    expect(await readSecret(createKeyring(fresh))).to.equal(KEY)
    const second = await run(rotation())
    expect(second).to.include({ code: 0 })
    expect(second.stdout).to.include('tenant acme: 0 wrapped, 1 already')
    for (const key of [KEY, base64(old), base64(fresh)]) expect(first.stdout + second.stdout).not.to.include(key)
  })

  it('ends with 1 when a record needs a key that is missing, and names the record and the id of the key', async () => {
    const stranger = createKeyring(randomBytes(32))
    await storeSecret(stranger, 'lost')
    const { code, stdout, stderr } = await run(rotation())
    expect(code).to.equal(1)
    expect(stdout).to.include('secret lost').and.include(stranger.primary.id)
    expect(stderr).to.include('1 records need a key that is missing')
    expect(stdout).not.to.include('No record needs another master key')
  })

  for (const [what, env, expected] of [
    ['without MASTER_KEY', () => ({ DATA_DIR: dir.path }), 'MASTER_KEY is not set'],
    ['with a wrong MASTER_KEY', () => ({ DATA_DIR: dir.path, MASTER_KEY: 'short' }), 'MASTER_KEY does not fit'],
    ['where there is no database', rotation, 'there is no '],
  ] as [string, () => Record<string, string>, string][])
    it(`D1.3a: ends with 78 ${what}, says what is wrong, and creates nothing`, async () => {
      const { code, stderr } = await run(env())
      expect(code).to.equal(78)
      expect(stderr).to.include(expected)
      expect(await readdir(dir.path)).to.deep.equal([])
    })

  it('--help says which settings it reads and in what order a rotation is done', async () => {
    const { code, stdout } = await run({}, ['--help'])
    expect(code).to.equal(0)
    expect(stdout).to.match(/^usage: scripts\/rewrap-keys/)
    for (const name of ['MASTER_KEY', 'MASTER_KEY_PREVIOUS', 'MONGODB_URL', 'DATA_DIR']) expect(stdout).to.include(name)
  })
})
