/** src/server/theme/mark.svg, which the service serves to its pages. */
export const Mark = () => <img class="mark" src="/theme/mark.svg" alt="" width="32" height="32" />
