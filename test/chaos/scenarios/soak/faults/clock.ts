import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aptInstall } from '../../../../../scripts/local-services/apt.ts'

const LIBRARY = '/usr/lib/*/faketime/libfaketimeMT.so.1'

/** Shifts the wall clocks of processes with libfaketime, each on its own. Monotonic clocks go on, as when an operator sets the time. */
export class Clocks implements Disposable {
  readonly #library: string | undefined
  readonly #dir = mkdtempSync(join(tmpdir(), 'agent-engine-clocks-'))

  /** Installs libfaketime with apt where it is missing. Where that fails, no clock can be shifted. */
  static async open(say: (line: string) => void): Promise<Clocks> {
    const find = () => globSync(LIBRARY)[0]
    if (find() === undefined) await aptInstall('libfaketime')
    const library = find()
    if (library === undefined) say('no clock is shifted: libfaketime is missing (Debian: apt-get install libfaketime)')
    return new Clocks(library)
  }

  private constructor(library: string | undefined) {
    this.#library = library
  }

  get canShift(): boolean {
    return this.#library !== undefined
  }

  /** Settings of a process whose clock can be shifted. */
  envOf(name: string): Record<string, string> {
    if (this.#library === undefined) return {}
    this.shift(name, 0)
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#fileOf(name),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DISABLE_SHM: '1',
    }
  }

  /** Takes effect within a second. */
  shift(name: string, secs: number): void {
    const file = this.#fileOf(name)
    writeFileSync(`${file}.new`, secs < 0 ? `${secs}` : `+${secs}`)
    renameSync(`${file}.new`, file) // So the process never reads a file that is half written.
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true })
  }

  #fileOf(name: string): string {
    return join(this.#dir, name.replaceAll(' ', '-'))
  }
}
