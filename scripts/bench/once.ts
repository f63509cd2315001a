import type { Bench } from './bench.ts'

/** A measurement that several figures share: it is made for the first of them. */
export function once<T>(measure: (bench: Bench) => Promise<T>): (bench: Bench) => Promise<T> {
  let measured: Promise<T> | undefined
  return (bench) => {
    measured ??= measure(bench)
    return measured
  }
}
