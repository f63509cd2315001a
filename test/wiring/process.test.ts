import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { ownProcess } from '../../services/wiring/process.ts'

describe('what a process knows about others on its machine', () => {
  it('a process is alive until it has ended', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] })
    await once(child, 'spawn')
    const pid = child.pid ?? 0
    expect(ownProcess.isAlive(pid)).to.equal(true)
    child.stdin.end()
    await once(child, 'exit')
    expect(ownProcess.isAlive(pid)).to.equal(false)
  })

  it('this process is alive, and its pid is its own', () => {
    expect(ownProcess.pid).to.equal(process.pid)
    expect(ownProcess.isAlive(process.pid)).to.equal(true)
  })

  it('a process of another user, which may not be signalled, is alive', () => {
    const { getuid, kill } = process
    // As root every process may be signalled, so the refusal of the system is imitated.
    if (getuid?.() === 0) {
      process.kill = () => {
        throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
      }
    }
    try {
      expect(ownProcess.isAlive(1)).to.equal(true)
    } finally {
      process.kill = kill
    }
  })

  it('a pid that no process can have is not alive', () => {
    for (const pid of [2 ** 30, 99_999_999_999]) expect(ownProcess.isAlive(pid), String(pid)).to.equal(false)
  })
})
