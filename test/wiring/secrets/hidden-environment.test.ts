import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { handOver } from '../../../services/wiring/secrets/hidden-environment.ts'

const MODULE = new URL('../../../services/wiring/secrets/hidden-environment.ts', import.meta.url).href

describe('settings that a parent hands over', () => {
  it('are waited for, also when the standard input does not block, and however long they are', async () => {
    const settings = { PATH: process.env['PATH'], OPS_TOKEN: 'x'.repeat(300_000) }
    const { env, input } = handOver(settings)
    const program = `process.stdin; const { readSettings } = await import('${MODULE}'); console.log('reads'); console.log(readSettings(process.env).OPS_TOKEN.length)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const printed = text(child.stdout)
    const closed = once(child, 'close')
    await once(child.stdout, 'readable')
    child.stdin.end(input)
    expect(await printed).to.equal('reads\n300000\n')
    expect((await closed)[0]).to.equal(0)
  })
})
