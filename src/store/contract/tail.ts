/**
 * Rows that are stored while a run is active without being meant for it get a `seq` from here upwards: they can be read at once, the
 * run's own rows come before them, and they are numbered on from the last when the run ends.
 */
export const TAIL_SEQ = 2 ** 50
