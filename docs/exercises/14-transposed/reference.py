"""What P must be: M times N transposed."""


def transposed(M, N):
    return M @ N.T
