#!/bin/sh
# over_dapl.sh PROVIDER ADDRESS PROGRAM...: runs a program of uDAPL with one of DAPL's two providers for verbs, under the name "weft".
# oscm connects queue pairs by number and talks over TCP; ofa connects by rdma_cm and is bound to ADDRESS, which is made the device's.
set -eu
provider=$1 address=$2
shift 2
case $provider in
  oscm) device="weft0 1" ;;
  ofa)
    device="$address 0"
    export WEFT_IP="$address"
    ;;
esac
DAT_OVERRIDE=$(dirname "$0")/dat.$$
export DAT_OVERRIDE
echo "weft u2.0 nonthreadsafe default libdapl$provider.so.2 dapl.2.0 \"$device\" \"\"" >"$DAT_OVERRIDE"
exec "$@"
