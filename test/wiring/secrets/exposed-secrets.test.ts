import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { findExposedSecrets } from '../../../services/wiring/secrets/exposed-secrets.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

describe('the search for secrets that a program of a tool could read', () => {
  const dir = useTempFolder({ perTest: true })

  it('finds them in environments, in arguments and in files, whole or as a part, and names the setting and the place', async () => {
    const variables = {
      API_TOKEN: 'token-of-another-process',
      OPS_TOKEN: 'short',
      REDIS_URL: 'redis://:password-in-an-address@127.0.0.1:6379',
      MODEL_API_KEY: 'key-in-a-file',
      HTTPS_PROXY: 'http://proxy:3128',
    }
    const mcpConfig = join(dir.path, 'mcp.json')
    const config = { variables, dataDir: dir.path, mcpConfig }
    expect(await findExposedSecrets(config)).to.deep.equal([])

    await writeFile(mcpConfig, `{"key": "${variables.MODEL_API_KEY}"}`)
    await writeFile(join(dir.path, 'master.key'), 'a key')
    const env = {
      ...process.env,
      OTHER: `x=${variables.API_TOKEN}`,
      OPS_TOKEN: 'short',
      HTTPS_PROXY: 'http://proxy:3128',
    }
    const child = spawn('sh', ['-c', 'read line', 'sh', 'password-in-an-address'], {
      env,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    await once(child, 'spawn')
    try {
      expect(await findExposedSecrets(config)).to.have.members([
        `OPS_TOKEN, API_TOKEN in the environment of process ${child.pid} (sh)`,
        `REDIS_URL in the arguments of process ${child.pid} (sh)`,
        `a master key in the file ${join(dir.path, 'master.key')}`,
        `MODEL_API_KEY in the file ${mcpConfig}`,
      ])
    } finally {
      child.stdin.end()
      await once(child, 'exit')
    }
  })

  it('waits for a process that is just starting, and does not read a pipe', async () => {
    const variables = {
      API_TOKEN: 'token-for-a-moment',
      OPS_TOKEN_FILE: '/proc/self/fd/0',
      MASTER_KEY_FILE: '/dev/zero',
    }
    const child = spawn('sh', ['-c', 'sleep 0.5'], {
      env: { ...process.env, API_TOKEN: variables.API_TOKEN },
      stdio: 'ignore',
    })
    await once(child, 'spawn')
    expect(await findExposedSecrets({ variables, dataDir: dir.path, mcpConfig: undefined })).to.deep.equal([])
  })
})
