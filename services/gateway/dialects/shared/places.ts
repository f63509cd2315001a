import { AppError } from '../../../../shared/kernel/errors.ts'

/** Where a request has its options: JSON pointers, by the options' names in the native API. */
export type Places = Readonly<Record<string, string>>

/** Carries out a step. Its errors then point to the place in the client's request, instead of the native one. */
export async function inPlaces<T>(places: Places, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (cause) {
    const place = cause instanceof AppError ? placeOf(places, cause) : undefined
    if (!(cause instanceof AppError) || place === undefined) throw cause
    throw new AppError(cause.kind, cause.message, { param: place, cause })
  }
}

function placeOf(places: Places, { param = '' }: AppError): string | undefined {
  const [, name = '', rest = ''] = /^\/(\w+)(.*)$/s.exec(param) ?? []
  const place = places[name]
  return place === undefined ? undefined : place + rest
}
