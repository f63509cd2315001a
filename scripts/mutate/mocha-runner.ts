import { globSync } from 'node:fs'
import { join } from 'node:path'
import {
  INSTRUMENTER_CONSTANTS,
  type InstrumenterContext,
  type MutantCoverage,
  type StrykerOptions,
} from '@stryker-mutator/api/core'
import { commonTokens, declareClassPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin'
import {
  type DryRunOptions,
  type DryRunResult,
  DryRunStatus,
  determineHitLimitReached,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner'
import Mocha from 'mocha'

/** A test that waits for something that a mutant prevents fails after this time. Endless loops end by Stryker's own time limit. */
const TIMEOUT_MS = 3_000
const UNCHANGED_MS = 60_000

/**
 * Runs mocha for StrykerJS, whose own mocha runner does not load with mocha 12. Node strips the types of the mutated files itself.
 * Each process loads the test files once, since Node cannot load an ES module a second time.
 */
class NodeMochaRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options)
  readonly #files: readonly string[]
  readonly #every: RegExp
  readonly #context: InstrumenterContext
  #mocha: Mocha | undefined
  #currentTest: ((test: string) => void) | undefined

  constructor(options: StrykerOptions) {
    this.#files = globSync(options['testFiles'] ?? []).toSorted()
    this.#every = new RegExp(`^(?!.*(${String(options['skippedTests'])}))`)
    const scope = globalThis as unknown as Record<string, InstrumenterContext>
    this.#context = scope[INSTRUMENTER_CONSTANTS.NAMESPACE] ??= {}
  }

  capabilities() {
    return { reloadEnvironment: false }
  }

  async dryRun({ disableBail }: DryRunOptions): Promise<DryRunResult> {
    this.#currentTest = (test) => (this.#context.currentTestId = test)
    const result = await this.#run(disableBail, undefined, undefined)
    this.#currentTest = undefined
    if (result.status !== DryRunStatus.Complete || this.#context.mutantCoverage === undefined) return result
    return { ...result, mutantCoverage: withoutReloads(this.#context.mutantCoverage) }
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const { activeMutant, disableBail, hitLimit, mutantActivation, testFilter } = options
    Object.assign(this.#context, { hitLimit, hitCount: hitLimit ? 0 : undefined })
    const loadedWith = mutantActivation === 'static' ? activeMutant.id : undefined
    return toMutantRunResult(await this.#run(disableBail, activeMutant.id, loadedWith, testFilter))
  }

  async #run(
    disableBail: boolean,
    mutant: string | undefined,
    loadedWith: string | undefined,
    only?: string[],
  ): Promise<DryRunResult> {
    try {
      const mocha = (this.#mocha ??= await this.#load(loadedWith))
      Object.assign(this.#context, { activeMutant: mutant })
      configure(mocha.suite, { bail: !disableBail, timeoutMs: mutant === undefined ? UNCHANGED_MS : TIMEOUT_MS })
      mocha.grep(only ? new RegExp(only.map((title) => `^${escapeRegExp(title)}$`).join('|')) : this.#every)
      const tests: TestResult[] = []
      await new Promise<void>((resolve) => {
        const runner = mocha.run(() => resolve())
        runner.on('pass', (test) => void tests.push(passed(test)))
        runner.on('fail', (test, error) => void tests.push(failed(test, error)))
      })
      return (
        determineHitLimitReached(this.#context.hitCount, this.#context.hitLimit) ?? {
          status: DryRunStatus.Complete,
          tests,
        }
      )
    } catch (error) {
      return { status: DryRunStatus.Error, errorMessage: String(error) }
    }
  }

  async #load(mutant: string | undefined): Promise<Mocha> {
    const mocha = new Mocha({ reporter: Mocha.reporters.Base as never, timeout: UNCHANGED_MS }) // The time of hooks; `configure` sets that of tests.
    mocha.cleanReferencesAfterRun(false)
    for (const file of this.#files) mocha.addFile(file)
    const report = (title: string) => this.#currentTest?.(title)
    mocha.suite.beforeEach(function () {
      report(this.currentTest?.fullTitle() ?? '')
    })
    process.on('uncaughtException', () => {}) // A test that ran into its time limit may still fail when its run is over.
    Object.assign(this.#context, { activeMutant: mutant })
    await mocha.loadFilesAsync()
    return mocha
  }
}

/** Stryker starts a process for each mutant that was also reached when the files were loaded, though `ignoreStatic` needs none. */
function withoutReloads({ static: loaded, perTest }: MutantCoverage): MutantCoverage {
  const inTests = new Set(Object.values(perTest).flatMap((hits) => Object.keys(hits)))
  return { perTest, static: Object.fromEntries(Object.entries(loaded).filter(([mutant]) => !inTests.has(mutant))) }
}

function configure(suite: Mocha.Suite, { bail, timeoutMs }: { bail: boolean; timeoutMs: number }): void {
  suite.bail(bail)
  for (const test of suite.tests) {
    test.timer = undefined // Otherwise mocha starts the timer of a test that has ended, which fails another run when it fires.
    test.timeout(timeoutMs)
  }
  // A hook that an earlier run has left unfinished may end in a later one. Mocha reports that as an `error` event, which ends the process when it has no listener.
  for (const hook of hooksOf(suite)) if (hook.listenerCount('error') === 0) hook.on('error', () => {})
  for (const child of suite.suites) configure(child, { bail, timeoutMs })
}

/** Mocha has no public list of them. */
const hooksOf = (suite: Mocha.Suite) =>
  (['_beforeAll', '_beforeEach', '_afterEach', '_afterAll'] as const).flatMap(
    (kind) => (suite as unknown as Record<typeof kind, Mocha.Hook[]>)[kind],
  )

function passed(test: Mocha.Test): TestResult {
  const title = test.fullTitle()
  return { id: title, name: title, ...fileOf(test), status: TestStatus.Success, timeSpentMs: test.duration ?? 0 }
}

function failed(test: Mocha.Test, error: Error): TestResult {
  const title = test.ctx?.currentTest?.fullTitle() ?? test.fullTitle()
  return {
    id: title,
    name: title,
    ...fileOf(test),
    status: TestStatus.Failed,
    timeSpentMs: test.duration ?? 0,
    failureMessage: error.message,
  }
}

/** By it `--incremental` knows whether a test was changed since it has found a mutant. */
const fileOf = ({ file }: Mocha.Test): { fileName?: string } =>
  file === undefined ? {} : { fileName: join(process.cwd(), file) }

const escapeRegExp = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'node-mocha', NodeMochaRunner)]

export const strykerValidationSchema = { properties: { skippedTests: { type: 'string' } } }
