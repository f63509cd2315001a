/** A path of the API. The texts in it, such as ids, may come from outside. */
export const path = (parts: TemplateStringsArray, ...texts: string[]): string =>
  String.raw({ raw: parts }, ...texts.map(encodeURIComponent))
